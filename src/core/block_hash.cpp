#include "core/block_hash.h"

#include <algorithm>

namespace deeptail {

std::uint32_t BlockHash::big_endian(const std::byte* p) {
  return std::to_integer<std::uint32_t>(p[0]) << 24 | std::to_integer<std::uint32_t>(p[1]) << 16 |
         std::to_integer<std::uint32_t>(p[2]) << 8 | std::to_integer<std::uint32_t>(p[3]);
}

void BlockHash::add(std::span<const std::byte> bytes) {
  const std::size_t held = n_bytes_ % 64;
  n_bytes_ += bytes.size();
  if (held > 0) {
    const std::size_t n = std::min(bytes.size(), 64 - held);
    std::copy_n(bytes.begin(), n, pending_.begin() + static_cast<std::ptrdiff_t>(held));
    bytes = bytes.subspan(n);
    if (held + n < 64) return;
    compress(pending_.data());
  }
  for (; bytes.size() >= 64; bytes = bytes.subspan(64)) compress(bytes.data());
  std::copy(bytes.begin(), bytes.end(), pending_.begin());
}

void BlockHash::pad() {
  const std::uint64_t n_bits = n_bytes_ * 8;
  std::array<std::byte, 72> padding{std::byte{0x80}};  // then zeros, then the length in bits, big endian
  const std::size_t n_zeros = (119 - n_bytes_ % 64) % 64;
  for (std::size_t i = 0; i < 8; ++i)
    padding[1 + n_zeros + i] = static_cast<std::byte>(n_bits >> (56 - 8 * i));
  add(std::span(padding).first(1 + n_zeros + 8));
}

bool is_hex(std::string_view text, std::size_t n) {
  return text.size() == n && std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

}  // namespace deeptail
