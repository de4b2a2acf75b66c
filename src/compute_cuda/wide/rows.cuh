// Residuals of wide models between products: where they begin, their norms.
#pragma once

#include "compute_cuda/exact/twofold_rows.cuh"
#include "compute_cuda/tiles/embedding.cuh"
#include "compute_cuda/tiles/fragments.cuh"

namespace deeptail::cuda {

inline constexpr int kWideModel = 512;

struct WideNorm {
  const float *w, *b;  // [512]
  float eps;
};

// Residuals: at last positions fp32, one row after the other; at all positions fp16, as rows that products take. Two neighbours, k is even:
__device__ inline float2 residual2(const float* x, std::uint32_t row, int k) {
  return load2(x + static_cast<std::size_t>(row) * kWideModel + k);
}
__device__ inline float2 residual2(const __half* x, std::uint32_t row, int k) {
  return __half22float2(*reinterpret_cast<const __half2*>(x + twofold_index(kWideModel, row, k)));
}

// The layer norm of residuals, as rows that products take. A warp takes eight rows, four lanes each, so that what it writes is
// contiguous.
template <class T>
__global__ void __launch_bounds__(128) wide_norm(const T* x, std::uint32_t n, WideNorm norm, __half* out) {
  constexpr int kPairs = kWideModel / 8;
  const int lane = threadIdx.x % 32, t = lane % 4;
  const std::uint32_t row = 8 * (blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32) + lane / 4;
  float2 v[kPairs];
  float sum = 0.0f, squares = 0.0f;
#pragma unroll
  for (int k = 0; k < kPairs; ++k) v[k] = residual2(x, min(row, n - 1), 8 * k + 2 * t);
#pragma unroll
  for (int k = 0; k < kPairs; ++k) sum += v[k].x + v[k].y;
  const float mean = row_sum(sum) / kWideModel;
#pragma unroll
  for (int k = 0; k < kPairs; ++k)
    squares = fmaf(v[k].x - mean, v[k].x - mean, fmaf(v[k].y - mean, v[k].y - mean, squares));
  const float scale = rsqrtf(row_sum(squares) / kWideModel + norm.eps);
  if (row >= n) return;
#pragma unroll
  for (int k = 0; k < kPairs; ++k) {
    const float2 w = load2(norm.w + 8 * k + 2 * t), b = load2(norm.b + 8 * k + 2 * t);
    *reinterpret_cast<std::uint32_t*>(out + twofold_index(kWideModel, row, 8 * k + 2 * t)) =
        pack(fmaf((v[k].x - mean) * scale, w.x, b.x), fmaf((v[k].y - mean) * scale, w.y, b.y));
  }
}

// x[i] = the embedding of row rows[(i + 1) stride - 1] (rows is null: of row i). A warp per row.
__global__ void __launch_bounds__(256)
    wide_embedding(Embedding e, std::uint32_t n, int stride, const std::uint32_t* rows, float* x) {
  const std::uint32_t i = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32, lane = threadIdx.x % 32;
  if (i >= n) return;
  const std::uint32_t row = rows == nullptr ? i : rows[(static_cast<std::size_t>(i) + 1) * stride - 1];
  const auto* u =
      reinterpret_cast<const float4*>(e.w_e + static_cast<std::size_t>(e.row_token[row]) * kWideModel);
  const auto* v =
      reinterpret_cast<const float4*>(e.w_pos + static_cast<std::size_t>(e.row_position[row]) * kWideModel);
  auto* to = reinterpret_cast<float4*>(x + static_cast<std::size_t>(i) * kWideModel);
#pragma unroll
  for (int k = 0; k < kWideModel / 128; ++k) {
    const float4 a = u[32 * k + lane], b = v[32 * k + lane];
    to[32 * k + lane] = {a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w};
  }
}

}  // namespace deeptail::cuda
