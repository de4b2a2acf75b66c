// From the two largest logits of rows to what is counted, or to margins.
#pragma once

#include "compute_cuda/fast/tail.cuh"
#include "compute_cuda/wide/rows.cuh"
#include "compute_cuda/wide/weights.cuh"

namespace deeptail::cuda {

struct FoundTops {
  int parts;
  std::size_t stride;  // rows of a part
  const float *best, *second;
  const std::uint32_t* column;
  __device__ TopTwo of(std::uint32_t row) const {
    TopTwo top{best[row], second[row], static_cast<int>(column[row])};
    for (int part = 1; part < parts; ++part) {
      const std::size_t at = part * stride + row;
      top.merge(best[at], second[at], static_cast<int>(column[at]));
    }
    return top;
  }
};

__global__ void __launch_bounds__(256) count_tops(std::uint32_t n, FoundTops found, CountSaid wanted) {
  const std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) wanted.settle(found.of(i), nullptr, i, n, 0);
}

// The target's logit minus the largest other one. A warp per row; y: rows as products take them.
__global__ void __launch_bounds__(256)
    margins_of_tops(std::uint32_t n, FoundTops found, const __half* y, const __half* w_u, const float* b_u,
                    const std::uint32_t* target, float* margin) {
  const std::uint32_t i = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32, lane = threadIdx.x % 32;
  if (i >= n) return;
  const std::uint32_t id = target[i];
  float sum = 0.0f;
#pragma unroll
  for (int k = 0; k < kWideModel / 256; ++k) {
    const int at = 256 * k + 8 * static_cast<int>(lane);
    sum += StoreMargin::dot8(*reinterpret_cast<const uint4*>(y + twofold_index(kWideModel, i, at)),
                             *reinterpret_cast<const uint4*>(w_u + WideWeights::index(kWideModel, id, at)));
  }
#pragma unroll
  for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);
  if (lane != 0) return;
  const TopTwo top = found.of(i);
  margin[i] = sum + b_u[id] - (top.id == static_cast<int>(id) ? top.second : top.best);
}

}  // namespace deeptail::cuda
