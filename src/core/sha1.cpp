#include "core/sha1.h"

#include <fmt/format.h>

#include <bit>

namespace deeptail {

// FIPS 180-4 section 6.1.2.
void Sha1::compress(const std::byte* block) {
  std::array<std::uint32_t, 80> w;
  for (std::size_t t = 0; t < 16; ++t) w[t] = big_endian(block + 4 * t);
  for (std::size_t t = 16; t < 80; ++t) w[t] = std::rotl(w[t - 3] ^ w[t - 8] ^ w[t - 14] ^ w[t - 16], 1);
  std::uint32_t a = state_[0], b = state_[1], c = state_[2], d = state_[3], e = state_[4];
  const auto round = [&](std::uint32_t f, std::uint32_t k, std::uint32_t word) {
    const std::uint32_t next = std::rotl(a, 5) + f + e + k + word;
    e = d, d = c, c = std::rotl(b, 30), b = a, a = next;
  };
  for (std::size_t t = 0; t < 20; ++t) round((b & c) ^ (~b & d), 0x5a827999, w[t]);
  for (std::size_t t = 20; t < 40; ++t) round(b ^ c ^ d, 0x6ed9eba1, w[t]);
  for (std::size_t t = 40; t < 60; ++t) round((b & c) ^ (b & d) ^ (c & d), 0x8f1bbcdc, w[t]);
  for (std::size_t t = 60; t < 80; ++t) round(b ^ c ^ d, 0xca62c1d6, w[t]);
  const std::array<std::uint32_t, 5> sum = {a, b, c, d, e};
  for (std::size_t i = 0; i < 5; ++i) state_[i] += sum[i];
}

std::string Sha1::hex() {
  pad();
  return fmt::format("{:08x}", fmt::join(state_, ""));
}

}  // namespace deeptail
