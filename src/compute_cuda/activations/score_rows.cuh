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
  int n_targets;
  const float *target_w, *target_b;  // [n_targets, stride], [n_targets]
  ColumnNorms norms;
  float *own, *error;  // [n]: best target logit; how far fp16 logits may be off
};

__device__ inline std::uint32_t count_of(std::uint32_t n, const std::uint32_t* n_device) {
  return n_device != nullptr ? min(*n_device, n) : n;
}

// Rounding of sums: of fp32 accumulation on tensor cores and of the fp32 sums themselves, far above both.
inline constexpr float kSumSlack = 0x1p-16f;

// A warp per row.
__global__ void __launch_bounds__(kRowThreads) normalise_rows(const __grid_constant__ NormaliseArgs a) {
  const std::uint32_t row = blockIdx.x * kRowWarps + threadIdx.x / 32;
  if (row >= count_of(a.n, a.n_device)) return;
  const int lane = threadIdx.x % 32;
  float* x = a.x + static_cast<std::size_t>(row) * a.stride;
  const float* mean_of_group =
      a.means + static_cast<std::size_t>(a.groups == nullptr ? 0 : a.groups[row]) * a.stride;
  float sum = 0.0f;
  for (int j = lane; j < a.d; j += 32) sum += x[j] = fmaf(x[j], a.unscale, mean_of_group[j]);
  if (a.ln_w != nullptr) {
    const float mean = warp_sum(sum) / a.d;
    float squares = 0.0f;
    for (int j = lane; j < a.d; j += 32) squares = fmaf(x[j] - mean, x[j] - mean, squares);
    const float rstd = 1.0f / sqrtf(warp_sum(squares) / a.d + a.eps);
    for (int j = lane; j < a.d; j += 32) x[j] = fmaf((x[j] - mean) * rstd, a.ln_w[j], a.ln_b[j]);
  }
  float length = 0.0f, rest = 0.0f;
  for (int j = lane; j < a.d; j += 32) {
    const __half rounded = __float2half_rn(x[j]);
    const float left = x[j] - __half2float(rounded);
    a.y16[twofold_index(a.width, row, j)] = rounded;
    length = fmaf(x[j], x[j], length);
    rest = fmaf(left, left, rest);
  }
  length = sqrtf(warp_sum(length));
  rest = sqrtf(warp_sum(rest));
  float own = -INFINITY;
  for (int t = 0; t < a.n_targets; ++t) {
    const float* w = a.target_w + static_cast<std::size_t>(t) * a.stride;
    float dot = 0.0f;
    for (int j = lane; j < a.d; j += 32) dot = fmaf(x[j], w[j], dot);
    own = fmaxf(own, warp_sum(dot) + a.target_b[t]);
  }
  if (lane != 0) return;
  a.own[row] = own;
  // |y16| <= |y| + |y - y16|; a thousandth for the rounding of the norms.
  const float reach = length + rest;
  a.error[row] = 1.001f * (rest * a.norms.largest + reach * a.norms.largest_rest) +
                 kSumSlack * reach * (a.norms.largest + a.norms.largest_rest);
}

// What becomes of candidates: their margin is written down, or those at or above the level are accepted.
struct Fate {
  float* margin = nullptr;  // [n], in the order of the candidates; null: accept
  float level = 0.0f;
  const float* proposed = nullptr;    // [particles, stride]; null: another group is accepted
  float* u = nullptr;                 // [particles, stride]
  std::uint32_t* groups = nullptr;    // [particles]
  std::uint32_t* accepted = nullptr;  // counts them
};

struct SettleArgs {
  std::uint32_t n;
  const std::uint32_t* n_device;
  int d, stride, n_tiles;
  const float* y;       // [n, stride]
  const float* maxima;  // [n, n_tiles]: of fp16 logits
  const float *own, *error;
  ColumnWeights w;
  const float* bias;            // [n_tiles * 256]: very low for the target and beyond the vocabulary
  const std::uint32_t* which;   // [n]: the particle
  const std::uint32_t* groups;  // [n]: of candidates, or null
  Fate fate;
};

inline constexpr int kSettleThreads = kMaximaColumns;
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
__device__ inline float exact_maximum(const SettleArgs& a, std::uint32_t row, float* y, const float* maxima,
                                      float least, float* scratch) {
  for (int j = static_cast<int>(threadIdx.x); j < a.w.width; j += kSettleThreads)
    y[j] = j < a.d ? a.y[static_cast<std::size_t>(row) * a.stride + j] : 0.0f;
  __syncthreads();
  float best = -INFINITY;
  for (int tile = 0; tile < a.n_tiles; ++tile) {
    if (maxima[tile] < least) continue;  // a NaN is not below
    const float sum = a.w.dot(y, tile, static_cast<int>(threadIdx.x));
    best = fmaxf(best, sum + a.bias[tile * kMaximaColumns + threadIdx.x]);
  }
  return block_max(best, scratch);
}

// A block per candidate.
__global__ void __launch_bounds__(kSettleThreads) settle_rows(const __grid_constant__ SettleArgs a) {
  extern __shared__ float y[];  // [width], then the row's maxima: [n_tiles]
  __shared__ float scratch[kSettleThreads / 32];
  const std::uint32_t row = blockIdx.x;
  if (row >= count_of(a.n, a.n_device)) return;
  float* maxima = y + a.w.width;
  float top = -INFINITY;
  for (int tile = static_cast<int>(threadIdx.x); tile < a.n_tiles; tile += kSettleThreads) {
    const float m = a.maxima[static_cast<std::size_t>(row) * a.n_tiles + tile];
    maxima[tile] = m;
    top = fmaxf(top, m);
  }
  top = block_max(top, scratch);
  const float own = a.own[row], error = a.error[row];
  const Fate& fate = a.fate;
  if (fate.margin != nullptr) {
    const float best = exact_maximum(a, row, y, maxima, top - 2.0f * error, scratch);
    if (threadIdx.x == 0) fate.margin[row] = own - best;
    return;
  }
  const float most = own - fate.level;  // that another logit may be
  if (top - error > most) return;
  // Beyond the range of fp16 the error is infinite or NaN, which leads to fp32.
  if (!(top + error < most)) {
    const float best = exact_maximum(a, row, y, maxima, most - error, scratch);
    if (!(own - best >= fate.level)) return;
  }
  const std::uint32_t particle = a.which[row];
  if (fate.proposed == nullptr) {
    if (threadIdx.x == 0) fate.groups[particle] = a.groups[row];
    return;
  }
  const std::size_t first = static_cast<std::size_t>(particle) * a.stride;
  for (int j = static_cast<int>(threadIdx.x); j < a.d; j += kSettleThreads)
    fate.u[first + j] = fate.proposed[first + j];
  if (threadIdx.x == 0) atomicAdd(fate.accepted, 1u);
}

}  // namespace deeptail::cuda
