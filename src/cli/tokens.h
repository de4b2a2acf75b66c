// Tokens for people: which tokenizer, and how a token is shown.
#pragma once

#include <optional>
#include <string>

#include "estimators/load_subject.h"

namespace deeptail::cli {

// The tokenizer with this hash, from any model that is found by name.
std::optional<NamedTokenizer> find_tokenizer(const std::string& sha256);

// The token in quotes, or nothing without a tokenizer.
std::string shown(const std::optional<NamedTokenizer>& tokenizer, TokenId id);

}  // namespace deeptail::cli
