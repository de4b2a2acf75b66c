// What column_maxima.cuh keeps of a tile of logits: of every row the largest that is not of its own target.
#pragma once

#include "compute_cuda/activations/column_weights.cuh"
#include "compute_cuda/tiles/fragments.cuh"

namespace deeptail::cuda {

inline constexpr float kLeftOut = -1e30f;  // below all logits

struct MaximaArgs {
  const __half* y;             // [n, width], in the order of twofold_rows.cuh
  const __half* w;             // as ColumnWeights
  const float* bias;           // [n_tiles * 256]
  const std::uint32_t* slots;  // [n]: whose target is left out
  Targets targets;
  std::uint32_t n;
  const std::uint32_t* n_device;
  int width, n_tiles;
  float* maxima;  // [n, n_tiles]
};

// The two rows of 16 that a lane has numbers of, and where bits of their targets' columns in a tile lie.
struct LaneRows {
  std::uint32_t row[2], slot[2];
  bool exists[2];
  __device__ LaneRows(const MaximaArgs& a, std::uint32_t first, std::uint32_t n) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      row[half] = first + 8 * half + threadIdx.x % 32 / 4;
      exists[half] = row[half] < n;
      slot[half] = exists[half] ? a.slots[row[half]] : 0;
    }
  }
  __device__ bool has_target(const MaximaArgs& a, int half, int tile) const {
    return exists[half] && a.targets.in_tile[static_cast<std::size_t>(slot[half]) * a.n_tiles + tile] != 0;
  }
};

// c: what a warp has of 16 rows and the 256 columns of a tile (fragments.cuh).
__device__ inline void store_maxima(const MaximaArgs& a, const float (&c)[32][4], const LaneRows& rows,
                                    const bool (&with_target)[2], int tile) {
  const int lane = threadIdx.x % 32;
  const float* bias = a.bias + tile * kMaximaColumns + 2 * (lane % 4);
  float best[2] = {-INFINITY, -INFINITY};
  if (!with_target[0] && !with_target[1]) {
#pragma unroll
    for (int i = 0; i < 32; ++i) {
      const float2 b = load2(bias + 8 * i);
#pragma unroll
      for (int half = 0; half < 2; ++half)
        best[half] = fmaxf(best[half], fmaxf(c[i][2 * half] + b.x, c[i][2 * half + 1] + b.y));
    }
  } else {
#pragma unroll
    for (int i = 0; i < 32; ++i) {
      const float2 b = load2(bias + 8 * i);
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const std::size_t at = static_cast<std::size_t>(rows.slot[half]) * a.n_tiles + tile;
        const std::uint32_t bits = with_target[half] ? a.targets.columns[8 * at + i / 4] : 0u;
        const std::uint32_t own = bits >> (8 * (i % 4) + 2 * (lane % 4));
        best[half] = fmaxf(best[half], (own & 1) != 0 ? kLeftOut : c[i][2 * half] + b.x);
        best[half] = fmaxf(best[half], (own & 2) != 0 ? kLeftOut : c[i][2 * half + 1] + b.y);
      }
    }
  }
  __syncwarp();
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const float m = row_max(best[half]);
    if (lane % 4 == 0 && rows.exists[half])
      a.maxima[static_cast<std::size_t>(rows.row[half]) * a.n_tiles + tile] = m;
  }
}

}  // namespace deeptail::cuda
