// Tokens that stand for one byte where a character has no token: <0x0A>.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace deeptail {

// Encoding knows them in upper case only, decoding in any.
inline std::string byte_token(unsigned char byte) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  return {'<', '0', 'x', kDigits[byte >> 4], kDigits[byte & 15u], '>'};
}

inline std::optional<unsigned char> byte_of_token(std::string_view entry) {
  if (entry.size() != 6 || !entry.starts_with("<0x") || entry[5] != '>') return std::nullopt;
  const auto digit = [](char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
  };
  const int high = digit(entry[3]), low = digit(entry[4]);
  if (high < 0 || low < 0) return std::nullopt;
  return static_cast<unsigned char>(high * 16 + low);
}

}  // namespace deeptail
