// Values of flags.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "deeptail/model.h"

namespace deeptail::cli {

// "0,17,42" -> ids. Throws InputError naming the flag and the piece that is not a whole number.
std::vector<TokenId> parse_ids(std::string_view text, std::string_view flag);

// "1000000", "1e6", "2^20" -> a whole number from 1 to 2^62.
std::uint64_t parse_count(std::string_view text, std::string_view flag);

}  // namespace deeptail::cli
