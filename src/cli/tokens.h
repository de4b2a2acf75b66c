// Tokens for people: which tokenizer, and how a token is shown.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "deeptail/estimators.h"

namespace deeptail::cli {

// The tokenizer with this hash, from any model that is found by name.
std::optional<NamedTokenizer> find_tokenizer(const std::string& sha256);

// The tokenizer of a model by name or folder; throws InputError where it has none.
NamedTokenizer require_tokenizer(const std::string& model);

// The token in quotes, or nothing without a tokenizer.
std::string shown(const std::optional<NamedTokenizer>& tokenizer, TokenId id);
// `310 "ic"`, several with commas between them.
std::string shown_tokens(const std::optional<NamedTokenizer>& tokenizer, std::span<const TokenId> ids);

// The bytes of the tokens; "" for an id that has none, as tokenizers with gaps have them.
std::string text_of_token(const Tokenizer& tokenizer, TokenId id);

}  // namespace deeptail::cli
