// From unwhitened candidates to their fate: the norm and the target's logit before the product with W_U, and
// the decision after it.
//
// The product (column_maxima.cuh) is in fp16. By Cauchy and Schwarz a logit of it is within
//   |y - y16| max |w| + |y| max |w - w16| + rounding of the sums
// of the true one, about 0.03 for logits of usual size. Where that leaves open whether the margin reaches
// the level, the tiles of columns that could matter are computed again in fp32. So the fp16 product decides
// nothing that fp32 would decide otherwise.
#pragma once

#include "compute_cuda/activations/column_maxima.cuh"
#include "compute_cuda/activations/proposals.cuh"

namespace deeptail::cuda {

struct NormaliseArgs {
  std::uint32_t n;
  const std::uint32_t* n_device;  // rows that there are, at most n
  int d, stride;
  float unscale;                // x is scaled by a power of two: this undoes it
  float* x;                     // [n, stride]: scaled u L^T; becomes y, as W_U takes it
  const float* means;           // [n_groups, stride]
  const std::uint32_t* groups;  // [n], or null: the first
  const float *ln_w, *ln_b;     // [d], or null: no norm
  float eps;
  __half* y16;  // [n, width], in the order of twofold_rows.cuh
  int width;
  std::int32_t* target;        // [n]: out, the column of its target
  const std::uint32_t* slots;  // [n]: whose target
  Targets targets;
  ColumnNorms norms;
  float *own, *error;  // [n]: best target logit; how far fp16 logits may be off
};

__device__ inline std::uint32_t count_of(std::uint32_t n, const std::uint32_t* n_device) {
  return n_device != nullptr ? min(*n_device, n) : n;
}

// Rounding of sums: of fp32 accumulation on tensor cores and of the fp32 sums themselves, far above both.
inline constexpr float kSumSlack = 0x1p-16f;

// What a lane has of a row.
template <int kChunks>
__device__ inline void load_row(const float* x, int d, int lane, float (&v)[kChunks][4]) {
#pragma unroll
  for (int chunk = 0; chunk < kChunks; ++chunk) load_four(x, 128 * chunk + 4 * lane, d, v[chunk]);
}
// As fp32, and as fp16 in the order of twofold_rows.cuh.
template <int kChunks>
__device__ inline void store_row(float* x, __half* y16, int width, std::uint32_t row, int d, int lane,
                                 const float (&v)[kChunks][4]) {
#pragma unroll
  for (int chunk = 0; chunk < kChunks; ++chunk) {
    const int j = 128 * chunk + 4 * lane;
    if (j + 4 <= d) {
      const __half2 halves[2] = {__floats2half2_rn(v[chunk][0], v[chunk][1]),
                                 __floats2half2_rn(v[chunk][2], v[chunk][3])};
      *reinterpret_cast<float4*>(x + j) = {v[chunk][0], v[chunk][1], v[chunk][2], v[chunk][3]};
      *reinterpret_cast<uint2*>(y16 + twofold_index(width, row, j)) = *reinterpret_cast<const uint2*>(halves);
    } else {
#pragma unroll
      for (int i = 0; i < 4; ++i)
        if (j + i < d) {
          x[j + i] = v[chunk][i];
          y16[twofold_index(width, row, j + i)] = __float2half_rn(v[chunk][i]);
        }
    }
  }
}

// A warp per row; a lane has four neighbours of every 128 numbers. kChunks: of 128 numbers, at least what a row has.
template <int kChunks>
__global__ void __launch_bounds__(kRowThreads) normalise_rows(const __grid_constant__ NormaliseArgs a) {
  const std::uint32_t row = blockIdx.x * kRowWarps + threadIdx.x / 32;
  if (row >= count_of(a.n, a.n_device)) return;
  const int lane = threadIdx.x % 32;
  float* x = a.x + static_cast<std::size_t>(row) * a.stride;
  const float* mean_of_group =
      a.means + static_cast<std::size_t>(a.groups == nullptr ? 0 : a.groups[row]) * a.stride;
  float v[kChunks][4];
  // body(number in the row, value), for those that exist.
  const auto for_each = [&](const auto& body) {
#pragma unroll
    for (int chunk = 0; chunk < kChunks; ++chunk)
#pragma unroll
      for (int i = 0; i < 4; ++i)
        if (const int j = 128 * chunk + 4 * lane + i; j < a.d) body(j, v[chunk][i]);
  };
  load_row<kChunks>(x, a.d, lane, v);
  float sum = 0.0f;
  for_each([&](int j, float& value) { sum += value = fmaf(value, a.unscale, mean_of_group[j]); });
  if (a.ln_w != nullptr) {
    const float mean = warp_sum(sum) / a.d;
    float squares = 0.0f;
    for_each([&](int, float value) { squares = fmaf(value - mean, value - mean, squares); });
    const float rstd = 1.0f / sqrtf(warp_sum(squares) / a.d + a.eps);
    for_each([&](int j, float& value) { value = fmaf((value - mean) * rstd, a.ln_w[j], a.ln_b[j]); });
  }
  float length = 0.0f, rest = 0.0f;
  for_each([&](int, float value) {
    const __half rounded = __float2half_rn(value);
    const float left = value - __half2float(rounded);
    length = fmaf(value, value, length);
    rest = fmaf(left, left, rest);
  });
  store_row<kChunks>(x, a.y16, a.width, row, a.d, lane, v);
  length = sqrtf(warp_sum(length));
  rest = sqrtf(warp_sum(rest));
  float own = -INFINITY;
  const std::uint32_t slot = a.slots[row];
  for (int t = 0; t < a.targets.n; ++t) {
    const std::size_t which = static_cast<std::size_t>(slot) * a.targets.n + t;
    const float* w = a.targets.w + which * a.targets.stride;
    float dot = 0.0f;
    for_each([&](int j, float value) { dot = fmaf(value, w[j], dot); });
    own = fmaxf(own, warp_sum(dot) + a.targets.b[which]);
  }
  if (lane != 0) return;
  a.own[row] = own;
  a.target[row] = a.targets.only[slot];
  // |y16| <= |y| + |y - y16|; a thousandth for the rounding of the norms.
  const float reach = length + rest;
  a.error[row] = 1.001f * (rest * a.norms.largest + reach * a.norms.largest_rest) +
                 kSumSlack * reach * (a.norms.largest + a.norms.largest_rest);
}

using NormaliseKernel = void (*)(NormaliseArgs);
inline NormaliseKernel normalise_kernel(int d) {
  if (d <= 128) return normalise_rows<1>;
  if (d <= 512) return normalise_rows<4>;
  if (d <= 2048) return normalise_rows<16>;
  if (d <= 8192) return normalise_rows<64>;
  throw Failure("activations of more than 8192 numbers");
}

// What becomes of candidates: their margin is written down, or those at or above the level are accepted.
struct Fate {
  float* margin = nullptr;                  // [n], in the order of the candidates; null: accept
  const Population* populations = nullptr;  // [slots]: their levels
  std::uint8_t* flipped = nullptr;          // [rows], as PointPlaces; null: another group is accepted
  std::uint32_t* groups = nullptr;          // [rows]
  std::uint32_t* accepted = nullptr;        // [slots]: counts them
};

struct SettleArgs {
  std::uint32_t n;
  const std::uint32_t* n_device;
  int d, stride, n_tiles;
  const float* y;       // [n, stride]
  const float* maxima;  // [n, n_tiles]: of fp16 logits
  const float *own, *error;
  ColumnWeights w;
  const float* bias;  // [n_tiles * 256]: very low beyond the vocabulary
  Targets targets;
  const std::uint32_t* which;   // [n]: row of the particle
  const std::uint32_t* slots;   // [n]: its population
  const std::uint32_t* groups;  // [n]: of candidates, or null
  Fate fate;
};

inline constexpr int kSettleThreads = kMaximaColumns, kSettleRows = kSettleThreads / 32;
static_assert(kSettleThreads % 32 == 0);

__device__ inline float block_max(float v, float* scratch) {
  v = warp_max(v);
  __syncthreads();  // scratch may still be read from the time before
  if (threadIdx.x % 32 == 0) scratch[threadIdx.x / 32] = v;
  __syncthreads();
  float best = scratch[0];
#pragma unroll
  for (int i = 1; i < kSettleThreads / 32; ++i) best = fmaxf(best, scratch[i]);
  return best;
}

// The largest logit of the tiles whose fp16 maximum is not below `least`, in fp32; a thread per column.
__device__ inline float exact_maximum(const SettleArgs& a, std::uint32_t row, float* y, float least,
                                      float* scratch) {
  __syncthreads();  // y may still be read from the time before
  for (int j = static_cast<int>(threadIdx.x); j < a.w.width; j += kSettleThreads)
    y[j] = j < a.d ? a.y[static_cast<std::size_t>(row) * a.stride + j] : 0.0f;
  __syncthreads();
  const float* maxima = a.maxima + static_cast<std::size_t>(row) * a.n_tiles;
  const std::uint32_t slot = a.slots[row];
  const int column = static_cast<int>(threadIdx.x), lane = column % 32;
  float best = -INFINITY;
  for (int some = 0; some < a.n_tiles; some += 32) {
    // All warps see the same: a lane looks at a tile, so that the maxima are not waited for one after the other.
    unsigned open = __ballot_sync(
        kAllLanes, some + lane < a.n_tiles && !(maxima[some + lane] < least));  // a NaN is not below
    for (; open != 0; open &= open - 1) {
      const int tile = some + __ffs(static_cast<int>(open)) - 1;
      const float sum = a.w.dot(y, tile, column) + a.bias[tile * kMaximaColumns + column];
      best = fmaxf(best, a.targets.holds(slot, a.n_tiles, tile, column) ? kLeftOut : sum);
    }
  }
  return block_max(best, scratch);
}

// What fp16 says of a candidate; where it cannot say, the maximum is found again among logits from `least` on.
enum class Said : int { kNothing, kRefused, kAccepted, kOpen };

struct Opinion {
  Said said = Said::kNothing;
  float least = 0.0f;
};

// By a warp.
__device__ inline Opinion look_at(const SettleArgs& a, std::uint32_t row) {
  float top = -INFINITY;
  for (int tile = static_cast<int>(threadIdx.x) % 32; tile < a.n_tiles; tile += 32)
    top = fmaxf(top, a.maxima[static_cast<std::size_t>(row) * a.n_tiles + tile]);
  top = warp_max(top);
  const float error = a.error[row];
  if (a.fate.margin != nullptr) return {Said::kOpen, top - 2.0f * error};
  const float most = a.own[row] - a.fate.populations[a.slots[row]].level;  // that another logit may be
  if (top - error > most) return {Said::kRefused};
  // Beyond the range of fp16 the error is infinite or NaN, which leads to fp32.
  return top + error < most ? Opinion{Said::kAccepted} : Opinion{Said::kOpen, most - error};
}

// By one thread.
__device__ inline void accept(const SettleArgs& a, std::uint32_t row) {
  const Fate& fate = a.fate;
  const std::uint32_t particle = a.which[row];
  if (fate.flipped == nullptr) {
    fate.groups[particle] = a.groups[row];
    return;
  }
  fate.flipped[particle] ^= 1;
  atomicAdd(fate.accepted + a.slots[row], 1u);
}

// A warp per candidate; those that fp16 leaves open are done by the whole block, one after the other.
__global__ void __launch_bounds__(kSettleThreads) settle_rows(const __grid_constant__ SettleArgs a) {
  extern __shared__ float y[];  // [width]
  __shared__ float scratch[kSettleRows], least[kSettleRows];
  __shared__ bool open[kSettleRows];
  const std::uint32_t first = blockIdx.x * kSettleRows, n = count_of(a.n, a.n_device);
  if (first >= n) return;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const Opinion opinion = first + warp < n ? look_at(a, first + warp) : Opinion{};
  if (opinion.said == Said::kAccepted && lane == 0) accept(a, first + warp);
  if (lane == 0) open[warp] = opinion.said == Said::kOpen, least[warp] = opinion.least;
  __syncthreads();
  for (int i = 0; i < kSettleRows; ++i) {
    if (!open[i]) continue;
    const std::uint32_t row = first + i;
    const float best = exact_maximum(a, row, y, least[i], scratch), margin = a.own[row] - best;
    if (threadIdx.x != 0) continue;
    if (a.fate.margin != nullptr)
      a.fate.margin[row] = margin;
    else if (margin >= a.fate.populations[a.slots[row]].level)
      accept(a, row);
  }
}

}  // namespace deeptail::cuda
