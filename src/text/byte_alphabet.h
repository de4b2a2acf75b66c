// The alphabet of byte-level BPE: one printable character for each byte, as GPT-2's vocabulary writes them.
// 0x21-0x7E, 0xA1-0xAC and 0xAE-0xFF stand for themselves; the other 68 bytes, in order, are U+0100 and up
// (so a space is U+0120).
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace deeptail {

// The bytes that a vocabulary entry stands for, or nothing when a character is outside the alphabet.
std::optional<std::string> bytes_from_alphabet(std::string_view entry);

// The character of one byte, in UTF-8.
std::string alphabet_character(unsigned char byte);

}  // namespace deeptail
