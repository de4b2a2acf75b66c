// The flags --target and --targets.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/tokens.h"
#include "deeptail/model.h"

namespace deeptail::cli {

// An id (1234), a token ( the), or several separated by commas. Whatever is wholly one token is that token,
// so a comma alone is the token ","; numbers are ids. A piece in double quotes is a token whatever it looks
// like: "7", "a,b".
Target parse_target(std::string_view text, const Head& head, const std::optional<NamedTokenizer>& tokenizer);

// What was asked for: the flag, as often as it was given, and then the lines of the file ("": none). A line
// holds ids and tokens as JSON texts, separated by commas: 310, or " the", or 310," the".
std::vector<Target> parse_targets(const std::vector<std::string>& flags, const std::string& file,
                                  const Head& head, const std::optional<NamedTokenizer>& tokenizer);

}  // namespace deeptail::cli
