// A look at a suite's text before the TOML library sees it.
#pragma once

#include <cstddef>
#include <string_view>

namespace deeptail {

inline constexpr std::size_t kMaxKeyParts = 8;

// Throws InputError for a dotted key, or the header of a table, of more than kMaxKeyParts parts: the library
// makes a table within a table of each, and walks through them by calling itself.
void check_toml_keys(std::string_view toml, std::string_view where);

}  // namespace deeptail
