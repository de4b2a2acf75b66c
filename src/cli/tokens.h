// Tokens for people: which tokenizer, and how a token is shown.
#pragma once

#include <optional>
#include <string>

#include "deeptail/model.h"
#include "deeptail/text.h"

namespace deeptail::cli {

// A model's tokenizer with the hash of its file.
struct NamedTokenizer {
  Tokenizer tokenizer;
  std::string sha256;
};
// Nothing when config.json names none.
std::optional<NamedTokenizer> tokenizer_of(const ModelConfig& config, const std::string& folder);
// The tokenizer with this hash, from any model that is found by name.
std::optional<NamedTokenizer> find_tokenizer(const std::string& sha256);

// The token in quotes, or nothing without a tokenizer.
std::string shown(const std::optional<NamedTokenizer>& tokenizer, TokenId id);

}  // namespace deeptail::cli
