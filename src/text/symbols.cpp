#include "text/symbols.h"

#include "deeptail/core.h"
#include "text/unicode.h"

namespace deeptail {

Symbols::Symbols(Config config) : config_(std::move(config)) {
  ascii_.fill(kNoToken);
  if (!config_.characters) return;
  for (std::size_t c = 0; c < ascii_.size(); ++c)
    if (const auto found = config_.characters->find(static_cast<char32_t>(c));
        found != config_.characters->end())
      ascii_[c] = found->second;
}

std::size_t Symbols::write(std::string_view piece, TokenId* out) const {
  return config_.characters ? write_units<true>(piece, out) : write_units<false>(piece, out);
}

// What has no token is held back until the next symbol that has one, or the next that has none: bytes of a
// character come before it. HuggingFace's library orders them so.
template <bool kCharacters>
std::size_t Symbols::write_units(std::string_view piece, TokenId* out) const {
  std::size_t n = 0;
  std::optional<TokenId> held;
  const auto release = [&] {
    if (held) out[n++] = *held;
    held.reset();
  };
  for (std::size_t pos = 0; pos < piece.size();) {
    TokenId id;
    std::size_t length = 1;
    if constexpr (kCharacters) {
      const CodePoint c = code_point_at(piece, pos);
      id = of_character(c.value);
      length = c.length;
    } else {
      id = config_.byte_ids[static_cast<unsigned char>(piece[pos])];
    }
    const std::string_view unit = piece.substr(pos, length);
    pos += length;
    if (id != kNoToken) {
      release();
      out[n++] = id;
    } else if (kCharacters && write_bytes(unit, out + n)) {
      n += length;
    } else {
      const TokenId unknown = unknown_for(unit);
      if (!config_.fuse_unknown) release();
      held = unknown;
    }
  }
  release();
  return n;
}

TokenId Symbols::of_character(char32_t c) const {
  if (c < ascii_.size()) return ascii_[c];
  const auto found = config_.characters->find(c);
  return found == config_.characters->end() ? kNoToken : found->second;
}

// All of them, or none.
bool Symbols::write_bytes(std::string_view bytes, TokenId* out) const {
  for (const char byte : bytes)
    if ((*out++ = config_.byte_ids[static_cast<unsigned char>(byte)]) == kNoToken) return false;
  return true;
}

TokenId Symbols::of_stray_byte(unsigned char byte) const {
  const TokenId id = config_.byte_ids[byte];
  const char text = static_cast<char>(byte);
  return id != kNoToken ? id : unknown_for({&text, 1});
}

TokenId Symbols::unknown_for(std::string_view unit) const {
  if (config_.unknown) return *config_.unknown;
  const auto byte = static_cast<unsigned char>(unit.front());
  if (!config_.characters || (unit.size() == 1 && byte >= 0x80))
    throw InputError(
        "the text contains the byte 0x{:02x}, for which the tokenizer's vocabulary has no token; "
        "use a tokenizer with all 256 bytes",
        byte);
  throw InputError(
      "the text contains the character U+{:04X}, for which the tokenizer's vocabulary has no token and that "
      "it has no token for unknown ones; use a tokenizer with byte_fallback or unk_token",
      static_cast<std::uint32_t>(code_point_at(unit, 0).value));
}

}  // namespace deeptail
