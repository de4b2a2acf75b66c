// A vocabulary without a tokenizer.json: what GGUF files hold.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "deeptail/text.h"
#include "text/spec.h"

namespace deeptail {

// Numbered as in GGUF.
enum class TokenType {
  normal = 1,
  unknown = 2,       // takes the place of what has no token
  control = 3,       // special, such as <s>: found in a text, never made by merges
  user_defined = 4,  // found in a text before anything else happens to it
  unused = 5,
  byte = 6,  // <0x0A>
};

struct Vocabulary {
  enum class Kind {
    sentencepiece,  // U+2581 for spaces, <0x0A> for bytes, merges by scores
    byte_level,  // entries in the byte alphabet (control and user_defined ones as they are), merges by a list
  };
  Kind kind = Kind::sentencepiece;
  std::vector<std::string> tokens = {};  // [n]: entry i has the id i
  std::vector<TokenType> types = {};     // [n]; empty: all normal
  std::vector<float> scores = {};  // [n], sentencepiece: of two tokens that merging could make, the higher
  std::vector<std::string> merges = {};  // byte_level: "a b", in order
  std::string pre_tokenizer =
      {};  // byte_level: its name in GGUF files, such as "gpt-2"; names_of_pre_tokenizers
  bool add_space_prefix = true;     // sentencepiece: a space before every text
  std::optional<TokenId> bos = {};  // put before a text that becomes an input
};

// Throws InputError, beginning with `where`, for lists of unequal length, entries that are no UTF-8, merges of
// what is no token, an unknown pre-tokenizer.
TokenizerSpec spec_of(const Vocabulary& vocabulary, const std::string& where);

// "gpt-2, llama-bpe, ...", for messages.
std::string names_of_pre_tokenizers();

}  // namespace deeptail
