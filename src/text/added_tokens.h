// Added tokens: found in the text before any pre-tokenizer sees it, the leftmost and then the longest first.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "deeptail/text.h"
#include "text/regex.h"

namespace deeptail {

struct AddedToken {
  TokenId id = 0;
  std::string content;
  bool normalized = false;   // looked for in the normalized text, in its normalized form
  bool lstrip = false;       // takes the white space before it
  bool rstrip = false;       // takes the white space after it
  bool single_word = false;  // only where no word character touches it
  bool special = false;      // no text: left out where a text is shown to people
};

class AddedTokenFinder {
 public:
  // patterns[i] is the text to look for for tokens[i]; of equal patterns the first counts.
  AddedTokenFinder(std::vector<AddedToken> tokens, const std::vector<std::string>& patterns);

  bool empty() const { return tokens_.empty(); }

  struct Part {
    Span span;
    const AddedToken* token;  // null: text between added tokens
  };
  // The parts of `text` in order. A token that begins with white space may overlap what an rstrip before it
  // took.
  std::vector<Part> find(std::string_view text) const;

 private:
  struct Match {
    Span span;
    const AddedToken* token;
  };
  Match next_match(std::string_view text, std::size_t from) const;  // token null: none

  std::vector<AddedToken> tokens_;
  // A trie: (node, byte) -> child; node 0 is the root.
  std::unordered_map<std::uint64_t, std::uint32_t> children_;
  std::vector<std::int32_t> token_at_;  // [node] index of the token that ends here, or -1
  bool first_byte_[256] = {};           // which bytes begin a token
};

}  // namespace deeptail
