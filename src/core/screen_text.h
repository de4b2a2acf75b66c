// Text on people's screens: safe to print, measured in columns.
#pragma once

#include <cstddef>
#include <limits>
#include <string>
#include <string_view>

namespace deeptail {

inline constexpr std::size_t kAnyWidth = std::numeric_limits<std::size_t>::max();

// Text from anywhere, made safe to print: a terminal would obey control characters. Characters that can be
// seen stay as they are in a UTF-8 locale; the bytes of all others are escaped (\x1b). Shortened to about
// max_width columns.
std::string screen_text(std::string_view text, std::size_t max_width = 80);
std::string screen_text(std::string_view text, std::size_t max_width, bool utf8);
// The same between double quotes, with those inside and backslashes escaped.
std::string quoted_text(std::string_view text, std::size_t max_width = 80);

// Do the variables of the environment ask for UTF-8? (Whether the locale is installed does not matter.)
bool utf8_locale();

// Columns that a terminal needs for it; escapes and control characters are not text and must not be there.
std::size_t display_width(std::string_view text);
// At most `width` columns, with ".." in place of the middle.
std::string shorten_middle(std::string_view text, std::size_t width);

}  // namespace deeptail
