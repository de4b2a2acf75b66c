#include "tensors/blocks.h"

#include <array>

#include "tensors/byte_reader.h"
#include "tensors/half.h"

namespace deeptail {

namespace {

constexpr std::size_t kSmall = 32, kLarge = 256;  // values of a block

float half_at(const std::byte* from) { return half_to_float(load<std::uint16_t>(from)); }
unsigned low(std::byte b) { return std::to_integer<unsigned>(b) & 15u; }
unsigned high(std::byte b) { return std::to_integer<unsigned>(b) >> 4; }
float signed_at(const std::byte* from) { return static_cast<float>(load<std::int8_t>(from)); }

// Small blocks keep values 0..15 in the low nibbles of 16 bytes and 16..31 in the high ones.
template <class Value>
void unpack_nibbles(const std::byte* bytes, float* out, Value value) {
  for (std::size_t i = 0; i < kSmall / 2; ++i) {
    out[i] = value(i, low(bytes[i]));
    out[i + kSmall / 2] = value(i + kSmall / 2, high(bytes[i]));
  }
}

void unpack_q4_0(const std::byte* block, float* out) {
  const float d = half_at(block);
  unpack_nibbles(block + 2, out,
                 [d](std::size_t, unsigned n) { return d * static_cast<float>(static_cast<int>(n) - 8); });
}

void unpack_q4_1(const std::byte* block, float* out) {
  const float d = half_at(block), m = half_at(block + 2);
  unpack_nibbles(block + 4, out, [d, m](std::size_t, unsigned n) { return d * static_cast<float>(n) + m; });
}

void unpack_q5_0(const std::byte* block, float* out) {
  const float d = half_at(block);
  const auto fifth = load<std::uint32_t>(block + 2);
  unpack_nibbles(block + 6, out, [d, fifth](std::size_t i, unsigned n) {
    const unsigned wide = n | ((fifth >> i) & 1u) << 4;
    return d * static_cast<float>(static_cast<int>(wide) - 16);
  });
}

void unpack_q5_1(const std::byte* block, float* out) {
  const float d = half_at(block), m = half_at(block + 2);
  const auto fifth = load<std::uint32_t>(block + 4);
  unpack_nibbles(block + 8, out, [d, m, fifth](std::size_t i, unsigned n) {
    return d * static_cast<float>(n | ((fifth >> i) & 1u) << 4) + m;
  });
}

void unpack_q8_0(const std::byte* block, float* out) {
  const float d = half_at(block);
  for (std::size_t i = 0; i < kSmall; ++i) out[i] = d * signed_at(block + 2 + i);
}

// Six-bit scales and minima of the eight groups of a Q4_K or Q5_K block, in 12 bytes: the first four whole in
// bytes 0..3 and 4..7, the others with four bits in bytes 8..11 and two in the upper bits of the first eight.
struct GroupScales {
  std::array<float, 8> scale, minimum;
};
GroupScales group_scales(const std::byte* block) {
  const float d = half_at(block), e = half_at(block + 2);
  const auto s = [block](std::size_t i) { return std::to_integer<unsigned>(block[4 + i]); };
  GroupScales out;
  for (std::size_t j = 0; j < 8; ++j) {
    const unsigned scale = j < 4 ? s(j) & 63u : (s(j + 4) & 15u) | (s(j - 4) >> 6) << 4;
    const unsigned minimum = j < 4 ? s(j + 4) & 63u : s(j + 4) >> 4 | (s(j) >> 6) << 4;
    out.scale[j] = d * static_cast<float>(scale);
    out.minimum[j] = e * static_cast<float>(minimum);
  }
  return out;
}

// Groups 2k and 2k + 1 are the low and the high nibbles of the same 32 bytes. fifth(j, l): what is added to
// the nibble of value l of group j.
template <class Fifth>
void unpack_groups(const GroupScales& g, const std::byte* nibbles, float* out, Fifth fifth) {
  for (std::size_t j = 0; j < 8; ++j)
    for (std::size_t l = 0; l < 32; ++l) {
      const std::byte both = nibbles[32 * (j / 2) + l];
      const unsigned n = (j % 2 == 0 ? low(both) : high(both)) + fifth(j, l);
      out[32 * j + l] = g.scale[j] * static_cast<float>(n) - g.minimum[j];
    }
}

void unpack_q4_k(const std::byte* block, float* out) {
  unpack_groups(group_scales(block), block + 16, out, [](std::size_t, std::size_t) { return 0u; });
}

void unpack_q5_k(const std::byte* block, float* out) {
  unpack_groups(group_scales(block), block + 48, out, [block](std::size_t j, std::size_t l) {
    return ((std::to_integer<unsigned>(block[16 + l]) >> j) & 1u) << 4;
  });
}

// Halves of 128 values, in quarters of 32: quarters 0 and 1 are the low nibbles of the half's 64 bytes,
// quarters 2 and 3 the high ones; the two upper bits of quarter k are bits 2k, 2k + 1 of 32 further bytes.
void unpack_q6_k(const std::byte* block, float* out) {
  const std::byte *lower = block, *upper = block + 128, *scales = block + 192;
  const float d = half_at(block + 208);
  for (std::size_t i = 0; i < kLarge; ++i) {
    const std::size_t half = i / 128, quarter = (i % 128) / 32, lane = i % 32;
    const std::byte both = lower[64 * half + 32 * (quarter % 2) + lane];
    const unsigned two = (std::to_integer<unsigned>(upper[32 * half + lane]) >> (2 * quarter)) & 3u;
    const unsigned n = (quarter < 2 ? low(both) : high(both)) | two << 4;
    out[i] = d * signed_at(scales + i / 16) * static_cast<float>(static_cast<int>(n) - 32);
  }
}

}  // namespace

BlockSize block_size(DType dtype) {
  switch (dtype) {
    case DType::kQ4_0:
      return {kSmall, 18};
    case DType::kQ4_1:
      return {kSmall, 20};
    case DType::kQ5_0:
      return {kSmall, 22};
    case DType::kQ5_1:
      return {kSmall, 24};
    case DType::kQ8_0:
      return {kSmall, 34};
    case DType::kQ4_K:
      return {kLarge, 144};
    case DType::kQ5_K:
      return {kLarge, 176};
    case DType::kQ6_K:
      return {kLarge, 210};
    default:
      return {1, size_of(dtype)};
  }
}

UnpackBlock unpack_block(DType dtype) {
  switch (dtype) {
    case DType::kQ4_0:
      return unpack_q4_0;
    case DType::kQ4_1:
      return unpack_q4_1;
    case DType::kQ5_0:
      return unpack_q5_0;
    case DType::kQ5_1:
      return unpack_q5_1;
    case DType::kQ8_0:
      return unpack_q8_0;
    case DType::kQ4_K:
      return unpack_q4_k;
    case DType::kQ5_K:
      return unpack_q5_k;
    case DType::kQ6_K:
      return unpack_q6_k;
    default:
      throw std::logic_error("unpack_block: stored one by one");
  }
}

}  // namespace deeptail
