// The --target flag.
#pragma once

#include <optional>
#include <string_view>

#include "cli/tokens.h"
#include "deeptail/model.h"

namespace deeptail::cli {

// An id (1234), a token ( the), or several separated by commas. Whatever is wholly one token is that token,
// so a comma alone is the token ","; numbers are ids. A piece in double quotes is a token whatever it looks
// like: "7", "a,b".
Target parse_target(std::string_view text, const Head& head, const std::optional<NamedTokenizer>& tokenizer);

}  // namespace deeptail::cli
