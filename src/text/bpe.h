// Byte-pair encoding of one pre-token: start from its symbols, and merge the neighbours whose merge has the
// lowest rank (the leftmost of equals) until none applies.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "deeptail/text.h"
#include "text/symbols.h"

namespace deeptail {

struct StringHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
};
using TokenIds = std::unordered_map<std::string, TokenId, StringHash, std::equal_to<>>;

struct Merge {
  TokenId left, right, merged;
};

// (left, right) -> rank and merged id, in one flat array with open addressing.
class MergeTable {
 public:
  static constexpr std::uint32_t kNone = UINT32_MAX;
  struct Entry {
    std::uint64_t key = 0;
    std::uint32_t rank = kNone;  // kNone: empty slot
    TokenId merged = 0;
  };

  // The rank of a merge is its place in the list where no ranks are given; of equal pairs the last counts.
  explicit MergeTable(const std::vector<Merge>& merges, const std::vector<std::uint32_t>& ranks = {});

  // An entry with rank kNone when the pair has no merge.
  const Entry& find(TokenId left, TokenId right) const { return entries_[slot_of(key_of(left, right))]; }

 private:
  static std::uint64_t key_of(TokenId left, TokenId right) {
    return static_cast<std::uint64_t>(static_cast<std::uint32_t>(left)) << 32 |
           static_cast<std::uint32_t>(right);
  }
  std::size_t slot_of(std::uint64_t key) const {
    const std::uint64_t mixed = key * 0x9E3779B97F4A7C15u;
    std::size_t slot = (mixed ^ mixed >> 32) & mask_;
    while (entries_[slot].rank != kNone && entries_[slot].key != key) slot = (slot + 1) & mask_;
    return slot;
  }
  std::vector<Entry> entries_;  // [power of two, at least twice the merges]
  std::size_t mask_ = 0;
};

class Bpe {
 public:
  struct Config {
    Symbols symbols;
    std::vector<Merge> merges;
    std::vector<std::uint32_t> ranks = {};  // [merges]; empty: their places in the list
    TokenIds whole_words =
        {};  // ignore_merges: a pre-token found here is that token, whatever the merges say
  };
  explicit Bpe(Config config);

  struct Pair {  // a merge that may be applied: its rank, its place, and the tokens it was found for
    std::uint32_t rank;
    std::size_t at;
    TokenId left, right;
  };
  struct Symbol {
    TokenId id;
    std::size_t previous, next;
  };
  struct Scratch {  // working memory of one encode call
    std::vector<Pair> heap;
    std::vector<Symbol> symbols;
    std::vector<TokenId> ids;
  };

  // Appends the tokens of `piece`. Throws InputError for a symbol without a token.
  void encode(std::string_view piece, Scratch& scratch, std::vector<TokenId>& out) const;

  const Symbols& symbols() const { return symbols_; }

 private:
  void encode_short(std::string_view piece, std::vector<TokenId>& out) const;
  void encode_long(std::string_view piece, Scratch& scratch, std::vector<TokenId>& out) const;

  Symbols symbols_;
  MergeTable merges_;
  TokenIds whole_words_;
};

}  // namespace deeptail
