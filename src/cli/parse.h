// Values of flags.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "core/parse_count.h"
#include "deeptail/model.h"

namespace deeptail::cli {

// "0,17,42" -> ids. Throws InputError naming the flag and the piece that is not a whole number.
std::vector<TokenId> parse_ids(std::string_view text, std::string_view flag);

using deeptail::parse_count;

}  // namespace deeptail::cli
