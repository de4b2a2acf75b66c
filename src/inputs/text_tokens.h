// Tokens that a distribution's file holds as text.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "deeptail/text.h"

namespace deeptail {

// Finds ids with the tokenizer.json that the file names, read when the first is asked for.
class TextTokens {
 public:
  // folder: where the file lies, "" where it is no file; tokenizer: what it names, relative to the folder, or
  // "". where: how messages begin.
  TextTokens(std::string_view folder, std::string_view tokenizer, std::string_view where)
      : folder_(folder), name_(tokenizer), where_(where) {}

  // Throws InputError, beginning with `place`, for a text that is not one token.
  TokenId id_of(std::string_view text, std::string_view place);
  // Of the tokenizer's file; "" while it was not needed.
  const std::string& sha256() const { return sha256_; }

 private:
  void load();

  std::string folder_, name_, where_, sha256_;
  std::optional<Tokenizer> tokenizer_;
};

}  // namespace deeptail
