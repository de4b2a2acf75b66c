// W_U for the maxima of logits: fp16 with what fp16 leaves, and how much that can matter.
#pragma once

#include <cuda_fp16.h>

#include <cstddef>
#include <cstdint>

namespace deeptail::cuda {

inline constexpr int kMaximaColumns = 256;

// Largest lengths of columns w, and of what fp16 leaves of them, w - w16.
struct ColumnNorms {
  float largest, largest_rest;
};

// The targets of all populations. Their columns are no others' logits: where a tile has one, a bit per column says so.
struct Targets {
  int n, stride;                 // of a target, at most; numbers of a column in w
  const float *w, *b;            // [slots, n, stride], [slots, n]: minus infinity where there is none
  const std::int32_t* only;      // [slots]: the column, or kSeveralColumns
  const std::uint8_t* in_tile;   // [slots, n_tiles]
  const std::uint32_t* columns;  // [slots, n_tiles, 8]: bits of the columns of a tile
  __device__ bool holds(std::uint32_t slot, int n_tiles, int tile, int column) const {
    const std::size_t at = static_cast<std::size_t>(slot) * n_tiles + tile;
    return in_tile[at] != 0 && (columns[8 * at + column / 32] >> column % 32 & 1) != 0;
  }
};

// W_U by tiles of 256 columns, each [width / 8][256][8]. high + low is the weight to 22 bits.
struct ColumnWeights {
  const __half *high, *low;
  int width;
  __host__ __device__ static std::size_t index(int width, std::size_t tile, int column, int k) {
    return ((tile * (width / 8) + k / 8) * kMaximaColumns + column) * 8 + k % 8;
  }
  // y: [width], in shared memory. Sums four lanes of the inner dimension, in a fixed order.
  __device__ float dot(const float* y, int tile, int column) const {
    constexpr int kAhead = 8;  // loads under way at once; a width is a multiple of 64
    float sum[4] = {};
    const std::size_t first = index(width, static_cast<std::size_t>(tile), column, 0);
    for (int k = 0; k < width; k += 8 * kAhead) {
      uint4 h[kAhead], l[kAhead];
#pragma unroll
      for (int i = 0; i < kAhead; ++i) {
        const std::size_t at = first + static_cast<std::size_t>(k + 8 * i) * kMaximaColumns;
        h[i] = __ldg(reinterpret_cast<const uint4*>(high + at));
        l[i] = __ldg(reinterpret_cast<const uint4*>(low + at));
      }
#pragma unroll
      for (int i = 0; i < kAhead; ++i) {
        const float* at = y + k + 8 * i;
        add(at, h[i].x, l[i].x, sum[0]);
        add(at + 2, h[i].y, l[i].y, sum[1]);
        add(at + 4, h[i].z, l[i].z, sum[2]);
        add(at + 6, h[i].w, l[i].w, sum[3]);
      }
    }
    return (sum[0] + sum[1]) + (sum[2] + sum[3]);
  }

 private:
  __device__ static void add(const float* y, std::uint32_t h, std::uint32_t l, float& sum) {
    const float2 a = __half22float2(*reinterpret_cast<const __half2*>(&h)),
                 b = __half22float2(*reinterpret_cast<const __half2*>(&l));
    sum = fmaf(y[0], a.x + b.x, sum);
    sum = fmaf(y[1], a.y + b.y, sum);
  }
};

// From panels [columns / 16][d][16]; a thread per column. norms: [2], as ColumnNorms.
__global__ void pack_columns(const float* panels, int d, int n_columns, int width, __half* high, __half* low,
                             float* norms) {
  const int column = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  const bool exists = column < n_columns;
  const float* from = panels + static_cast<std::size_t>(column / 16) * d * 16 + column % 16;
  float squares = 0.0f, rest_squares = 0.0f;
  for (int k = 0; k < width; k += 8) {
    alignas(16) __half h[8], l[8];
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      const float w = exists && k + i < d ? from[static_cast<std::size_t>(k + i) * 16] : 0.0f;
      h[i] = __float2half_rn(w);
      const float rest = w - __half2float(h[i]);
      l[i] = __float2half_rn(rest);
      squares = fmaf(w, w, squares);
      rest_squares = fmaf(rest, rest, rest_squares);
    }
    const std::size_t at = ColumnWeights::index(width, static_cast<std::size_t>(column / kMaximaColumns),
                                                column % kMaximaColumns, k);
    *reinterpret_cast<uint4*>(high + at) = *reinterpret_cast<const uint4*>(h);
    *reinterpret_cast<uint4*>(low + at) = *reinterpret_cast<const uint4*>(l);
  }
  // Numbers from 0 are ordered as their bits are, and a NaN comes out on top.
  atomicMax(reinterpret_cast<int*>(norms), __float_as_int(1.001f * sqrtf(squares)));
  atomicMax(reinterpret_cast<int*>(norms + 1), __float_as_int(1.001f * sqrtf(rest_squares)));
}

}  // namespace deeptail::cuda
