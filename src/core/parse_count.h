// Whole numbers as people write them.
#pragma once

#include <cstdint>
#include <string_view>

namespace deeptail {

// "1000000", "1e6", "2^20" -> a whole number from 1 to 2^62. Throws InputError that begins with `where`.
std::uint64_t parse_count(std::string_view text, std::string_view where);

}  // namespace deeptail
