// Tokens for people: which tokenizer, and how a token is shown.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "deeptail/estimators.h"

namespace deeptail::cli {

// The tokenizer with this hash, from any model that is found by name.
std::optional<NamedTokenizer> find_tokenizer(const std::string& sha256);

// The tokenizer of a model by name or folder; throws InputError where it has none.
NamedTokenizer require_tokenizer(const std::string& model);

// The same, or the tokenizer of a tokenizer.json, or of a folder that holds one and no model.
NamedTokenizer require_any_tokenizer(const std::string& model_or_file);

// auto, none, or a token's id. Throws InputError naming the flag.
Bos parse_bos(const std::string& text);
inline constexpr const char* kBosHelp =
    "Before a text: auto (what the tokenizer's template says), none, or a token's id";
// The tokens of a text that becomes an input; says on stderr when that gives two BOS.
std::vector<TokenId> encode_input(const Tokenizer& tokenizer, std::string_view text, const Bos& bos);

// The token in quotes, or nothing without a tokenizer.
std::string shown(const std::optional<NamedTokenizer>& tokenizer, TokenId id);
// `310 "ic"`, several with commas between them.
std::string shown_tokens(const std::optional<NamedTokenizer>& tokenizer, std::span<const TokenId> ids);

// The bytes of the tokens; "" for an id that has none, as tokenizers with gaps have them.
std::string text_of_token(const Tokenizer& tokenizer, TokenId id);

}  // namespace deeptail::cli
