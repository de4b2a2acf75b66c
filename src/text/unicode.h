// UTF-8 and the two character classes that added tokens ask about.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace deeptail {

// Length in bytes of the longest prefix that is valid UTF-8 (no surrogates, no overlong forms, at most
// U+10FFFF).
std::size_t valid_utf8_prefix(std::string_view text);

// The code point that starts at text[pos]. The text must be valid UTF-8.
struct CodePoint {
  char32_t value;
  std::size_t length;  // bytes
};
CodePoint code_point_at(std::string_view text, std::size_t pos);
CodePoint code_point_before(std::string_view text, std::size_t pos);

void append_utf8(char32_t code_point, std::string& out);

bool is_white_space(char32_t c);  // the Unicode property White_Space
bool is_word(char32_t c);         // what \w means: Alphabetic, marks, decimal digits, connectors, joiners

}  // namespace deeptail
