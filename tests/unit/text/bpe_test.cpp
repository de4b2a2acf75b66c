#include "text/bpe.h"

#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <random>

#include "deeptail/core.h"

namespace deeptail {
namespace {

Symbols::ByteIds all_bytes() {
  Symbols::ByteIds ids;
  for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<TokenId>(i);
  return ids;
}

Bpe make_bpe(std::vector<Merge> merges, std::vector<std::uint32_t> ranks = {}) {
  return Bpe({.symbols = Symbols({.byte_ids = all_bytes()}),
              .merges = std::move(merges),
              .ranks = std::move(ranks)});
}

std::vector<TokenId> encode(const Bpe& bpe, std::string_view piece) {
  Bpe::Scratch scratch;
  std::vector<TokenId> out;
  bpe.encode(piece, scratch, out);
  return out;
}

// The definition, one merge at a time.
std::vector<TokenId> encode_slowly(const std::vector<Merge>& merges, std::string_view piece) {
  std::map<std::pair<TokenId, TokenId>, std::size_t> ranks;
  for (std::size_t i = 0; i < merges.size(); ++i) ranks[{merges[i].left, merges[i].right}] = i;
  std::vector<TokenId> ids;
  for (const char c : piece) ids.push_back(static_cast<unsigned char>(c));
  while (true) {
    std::size_t best_rank = merges.size(), best_at = 0;
    for (std::size_t i = 0; i + 1 < ids.size(); ++i) {
      const auto found = ranks.find({ids[i], ids[i + 1]});
      if (found != ranks.end() && found->second < best_rank) {
        best_rank = found->second;
        best_at = i;
      }
    }
    if (best_rank == merges.size()) return ids;
    ids[best_at] = merges[best_rank].merged;
    ids.erase(ids.begin() + static_cast<std::ptrdiff_t>(best_at) + 1);
  }
}

// Random merges over a few letters; tokens with the same text share an id, as in a real vocabulary.
std::vector<Merge> random_merges(std::mt19937& random, std::size_t count) {
  std::vector<std::string> texts = {"a", "b", "c"};
  std::map<std::string, TokenId> ids = {{"a", 'a'}, {"b", 'b'}, {"c", 'c'}};
  std::vector<Merge> merges;
  while (merges.size() < count) {
    const std::string left = texts[random() % texts.size()], right = texts[random() % texts.size()];
    const auto [merged, is_new] = ids.try_emplace(left + right, static_cast<TokenId>(256 + ids.size()));
    if (is_new) texts.push_back(left + right);
    merges.push_back({ids[left], ids[right], merged->second});
  }
  return merges;
}

TEST(Bpe, AgreesWithTheDefinitionForEveryLength) {
  std::mt19937 random(1);
  for (int round = 0; round < 60; ++round) {
    const auto merges = random_merges(random, 1 + random() % 40);
    const Bpe bpe = make_bpe(merges);
    for (std::size_t length = 0; length < 120; length += 1 + length / 8) {
      std::string piece;
      for (std::size_t i = 0; i < length; ++i) piece += "abc"[random() % 3];
      ASSERT_EQ(encode(bpe, piece), encode_slowly(merges, piece)) << piece;
    }
  }
}

TEST(Bpe, TheLeftmostOfEqualMergesGoesFirst) {
  const Bpe bpe = make_bpe({{'a', 'a', 256}});
  EXPECT_EQ(encode(bpe, "aaa"), (std::vector<TokenId>{256, 'a'}));
  EXPECT_EQ(encode(bpe, std::string(101, 'a')).back(), 'a');
}

TEST(Bpe, OfEqualMergesTheLastGivesTheRank) {
  const Bpe bpe = make_bpe({{'a', 'b', 256}, {'b', 'c', 257}, {'a', 'b', 256}});
  EXPECT_EQ(encode(bpe, "abc"), (std::vector<TokenId>{'a', 257}));
}

TEST(Bpe, OfMergesWithEqualRanksTheLeftmostGoesFirst) {
  const std::vector<Merge> merges = {{'b', 'c', 257}, {'a', 'b', 256}};
  EXPECT_EQ(encode(make_bpe(merges), "abc"), (std::vector<TokenId>{'a', 257}));
  EXPECT_EQ(encode(make_bpe(merges, {3, 3}), "abc"), (std::vector<TokenId>{256, 'c'}));
  EXPECT_EQ(encode(make_bpe(merges, {1, 0}), "abc"), (std::vector<TokenId>{256, 'c'}));
}

TEST(Bpe, WholeWordsComeBeforeMerges) {
  const Bpe bpe({.symbols = Symbols({.byte_ids = all_bytes()}),
                 .merges = {{'a', 'b', 256}},
                 .whole_words = {{"abc", 300}}});
  EXPECT_EQ(encode(bpe, "abc"), (std::vector<TokenId>{300}));
  EXPECT_EQ(encode(bpe, "abca"), (std::vector<TokenId>{256, 'c', 'a'}));
}

TEST(Bpe, AByteWithoutATokenIsNamed) {
  auto ids = all_bytes();
  ids[0x7F] = Symbols::kNoToken;
  const Bpe bpe({.symbols = Symbols({.byte_ids = ids}), .merges = {}});
  try {
    encode(bpe, "ab\x7F");
    FAIL();
  } catch (const InputError& e) {
    EXPECT_NE(std::string(e.what()).find("0x7f"), std::string::npos) << e.what();
  }
}

TEST(Bpe, LongPiecesAreNotQuadratic) {
  std::vector<Merge> merges = {{'a', 'a', 256}};
  for (TokenId id = 257; id < 264; ++id) merges.push_back({id - 1, id - 1, id});
  const Bpe bpe = make_bpe(merges);
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(encode(bpe, std::string(1 << 17, 'a')).size(), (1u << 17) / 256);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10));
}

}  // namespace
}  // namespace deeptail
