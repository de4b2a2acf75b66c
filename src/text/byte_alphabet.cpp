#include "text/byte_alphabet.h"

#include <array>

#include "text/unicode.h"

namespace deeptail {

namespace {

constexpr char32_t kAlphabetEnd = 0x100 + 68;

struct Alphabet {
  std::array<char32_t, 256> character{};
  std::array<int, kAlphabetEnd> byte{};  // -1: not in the alphabet
};

constexpr Alphabet make_alphabet() {
  Alphabet alphabet;
  alphabet.byte.fill(-1);
  char32_t next = 0x100;
  for (int b = 0; b < 256; ++b) {
    const bool printable = (b >= 0x21 && b <= 0x7E) || (b >= 0xA1 && b <= 0xAC) || b >= 0xAE;
    const char32_t c = printable ? static_cast<char32_t>(b) : next++;
    alphabet.character[static_cast<std::size_t>(b)] = c;
    alphabet.byte[c] = b;
  }
  return alphabet;
}

constexpr Alphabet kAlphabet = make_alphabet();

}  // namespace

std::optional<std::string> bytes_from_alphabet(std::string_view entry) {
  std::string bytes;
  bytes.reserve(entry.size());
  for (std::size_t pos = 0; pos < entry.size();) {
    const auto [c, length] = code_point_at(entry, pos);
    if (c >= kAlphabetEnd || kAlphabet.byte[c] < 0) return std::nullopt;
    bytes += static_cast<char>(kAlphabet.byte[c]);
    pos += length;
  }
  return bytes;
}

std::string alphabet_character(unsigned char byte) {
  std::string out;
  append_utf8(kAlphabet.character[byte], out);
  return out;
}

}  // namespace deeptail
