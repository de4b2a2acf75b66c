// Numbers as high + low, both fp16: 22 bits of mantissa, so that tensor cores multiply nearly as exactly as
// fp32 does.
//
// Rows lie in device memory in the order in which tensor cores take them, so that a tile of 128 rows and 64
// columns is one run of 16 KiB.
#pragma once

#include <cuda_fp16.h>

#include <cstddef>
#include <cstdint>

namespace deeptail::cuda {

inline constexpr int kTileRows = 128, kTileColumns = 128, kTileDepth = 64;

// [n, width]: n is rounded up to 128, width to 64, with zeros in what was added.
struct TwofoldRows {
  __half *high = nullptr, *low = nullptr;
  int width = 0;
};

// How many there are: n, or where on_device is not null, what it holds, at most n.
struct RowCount {
  std::uint32_t n;
  const std::uint32_t* on_device = nullptr;
  __device__ std::uint32_t get() const { return on_device != nullptr ? min(*on_device, n) : n; }
};

// Where element (row, k) is in each of the two arrays.
__host__ __device__ inline std::size_t twofold_index(int width, std::uint32_t row, int k) {
  return (static_cast<std::size_t>(row / kTileRows) * (width / 8) + k / 8) * (8 * kTileRows) +
         row % kTileRows * 8 + k % 8;
}

__device__ inline void store_twofold(const TwofoldRows& to, std::uint32_t row, int k, float value) {
  const std::size_t at = twofold_index(to.width, row, k);
  const __half high = __float2half_rn(value);
  to.high[at] = high;
  to.low[at] = __float2half_rn(value - __half2float(high));
}

// Two neighbours; k is even.
__device__ inline void store_twofold2(const TwofoldRows& to, std::uint32_t row, int k, float v0, float v1) {
  const std::size_t at = twofold_index(to.width, row, k);
  const __half2 high = __floats2half2_rn(v0, v1);
  const float2 rounded = __half22float2(high);
  *reinterpret_cast<__half2*>(to.high + at) = high;
  *reinterpret_cast<__half2*>(to.low + at) = __floats2half2_rn(v0 - rounded.x, v1 - rounded.y);
}

// Four neighbours; k is a multiple of 4.
__device__ inline void store_twofold4(const TwofoldRows& to, std::uint32_t row, int k, const float (&v)[4]) {
  const __half2 high[2] = {__floats2half2_rn(v[0], v[1]), __floats2half2_rn(v[2], v[3])};
  const float2 a = __half22float2(high[0]), b = __half22float2(high[1]);
  const __half2 low[2] = {__floats2half2_rn(v[0] - a.x, v[1] - a.y),
                          __floats2half2_rn(v[2] - b.x, v[3] - b.y)};
  const std::size_t at = twofold_index(to.width, row, k);
  *reinterpret_cast<uint2*>(to.high + at) = *reinterpret_cast<const uint2*>(high);
  *reinterpret_cast<uint2*>(to.low + at) = *reinterpret_cast<const uint2*>(low);
}

// Eight neighbours; k is a multiple of 8.
__device__ inline void store_twofold8(const TwofoldRows& to, std::uint32_t row, int k, const float* v) {
  uint4 high, low;
  auto* h = reinterpret_cast<__half2*>(&high);
  auto* l = reinterpret_cast<__half2*>(&low);
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    h[i] = __floats2half2_rn(v[2 * i], v[2 * i + 1]);
    const float2 rounded = __half22float2(h[i]);
    l[i] = __floats2half2_rn(v[2 * i] - rounded.x, v[2 * i + 1] - rounded.y);
  }
  const std::size_t at = twofold_index(to.width, row, k);
  *reinterpret_cast<uint4*>(to.high + at) = high;
  *reinterpret_cast<uint4*>(to.low + at) = low;
}

}  // namespace deeptail::cuda
