// What column_maxima.cuh keeps of a tile of logits: of every row the largest that is not of its own target.
#pragma once

#include "compute_cuda/activations/column_weights.cuh"
#include "compute_cuda/tiles/fragments.cuh"

namespace deeptail::cuda {

inline constexpr float kLeftOut = -1e30f;  // below all logits

// Instead of the one column of a target.
inline constexpr std::int32_t kNoColumn = -1 << 20, kSeveralColumns = -1;

struct MaximaArgs {
  const __half* y;             // [n, width], in the order of twofold_rows.cuh
  const __half* w;             // as ColumnWeights
  const float* bias;           // [n_tiles * 256]
  const std::int32_t* target;  // [n]: the column that is left out, or kSeveralColumns
  const std::uint32_t* slots;  // [n]: whose these are
  Targets targets;
  std::uint32_t n;
  const std::uint32_t* n_device;
  int width, n_tiles;
  float* maxima;  // [n, n_tiles]
};

// The two rows of 16 that a lane has numbers of, and the columns of their targets.
struct LaneRows {
  std::uint32_t row[2];
  std::int32_t target[2];  // as MaximaArgs::target; kNoColumn for rows that are not there
  bool exists[2];
  __device__ LaneRows(const MaximaArgs& a, std::uint32_t first, std::uint32_t n) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      row[half] = first + 8 * half + threadIdx.x % 32 / 4;
      exists[half] = row[half] < n;
      target[half] = exists[half] ? a.target[row[half]] : kNoColumn;
    }
  }
  __device__ bool may_be_in(int half, int tile) const {
    return several(half) || target[half] / kMaximaColumns == tile;
  }
  __device__ bool several(int half) const { return target[half] == kSeveralColumns; }
};

// Largest of the lane's logits of its two rows, but for those of which left_out(half, column of the tile) says so.
template <class LeftOut>
__device__ inline void find_best(const float (&c)[32][4], const float* bias, int own_columns,
                                 const LeftOut& left_out, float (&best)[2]) {
#pragma unroll
  for (int i = 0; i < 32; ++i) {
    const float2 b = load2(bias + 8 * i);
#pragma unroll
    for (int half = 0; half < 2; ++half)
#pragma unroll
      for (int side = 0; side < 2; ++side) {
        const float logit = c[i][2 * half + side] + (side == 0 ? b.x : b.y);
        best[half] = fmaxf(best[half], left_out(half, 8 * i + own_columns + side) ? kLeftOut : logit);
      }
  }
}

// c: what a warp has of 16 rows and the 256 columns of a tile (fragments.cuh).
__device__ inline void store_maxima(const MaximaArgs& a, const float (&c)[32][4], const LaneRows& rows,
                                    int tile) {
  const int lane = threadIdx.x % 32, own_columns = 2 * (lane % 4);
  const float* bias = a.bias + tile * kMaximaColumns + own_columns;
  float best[2] = {-INFINITY, -INFINITY};
  // Three ways, since a warp takes the longest of its rows', and all warps of a block wait for the slowest.
  if (!rows.may_be_in(0, tile) && !rows.may_be_in(1, tile)) {
    find_best(
        c, bias, own_columns, [](int, int) { return false; }, best);
  } else if (!rows.several(0) && !rows.several(1)) {
    const std::int32_t first = tile * kMaximaColumns,
                       own[2] = {rows.target[0] - first, rows.target[1] - first};
    find_best(
        c, bias, own_columns, [&](int half, int column) { return column == own[half]; }, best);
  } else {
    find_best(
        c, bias, own_columns,
        [&](int half, int column) {
          if (!rows.several(half)) return rows.target[half] == tile * kMaximaColumns + column;
          return a.targets.holds(a.slots[rows.row[half]], a.n_tiles, tile, column);
        },
        best);
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
