// How far particles went: measure_jump of splitting/kernels/kernels.cpp, column by column.
#pragma once

#include <cstdint>

#include "compute_cuda/activations/proposals.cuh"

namespace deeptail::cuda {

inline constexpr int kJumpColumns = 32, kJumpThreads = 32 * 8;

// sums: [slots, d, 4] = per population, by blockIdx.y, and column the sums over rows of (after - before)^2, and of the centred before * after,
// before^2 and after^2.
__global__ void __launch_bounds__(kJumpThreads)
    jump_sums(Moving moving, int d, int stride, const float* before, const float* after, double* sums) {
  constexpr int kWarps = kJumpThreads / 32;
  const std::uint32_t slot = moving.slots[blockIdx.y], n = moving.populations[slot].n;
  const std::size_t first = static_cast<std::size_t>(moving.populations[slot].first) * stride;
  before += first, after += first, sums += static_cast<std::size_t>(slot) * d * 4;
  __shared__ double part[kWarps][4][kJumpColumns];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int column = static_cast<int>(blockIdx.x) * kJumpColumns + lane;
  const bool exists = column < d;
  const auto total = [&](int which, double own) {
    __syncthreads();  // what was there may still be read
    part[warp][which][lane] = own;
    __syncthreads();
    double sum = 0.0;
    for (int w = 0; w < kWarps; ++w) sum += part[w][which][lane];
    return sum;
  };
  double b_sum = 0.0, a_sum = 0.0;
  for (std::uint32_t i = warp; exists && i < n; i += kWarps) {
    b_sum += before[static_cast<std::size_t>(i) * stride + column];
    a_sum += after[static_cast<std::size_t>(i) * stride + column];
  }
  const double b_mean = total(0, b_sum) / n, a_mean = total(1, a_sum) / n;
  double found[4] = {};
  for (std::uint32_t i = warp; exists && i < n; i += kWarps) {
    const double b = before[static_cast<std::size_t>(i) * stride + column],
                 a = after[static_cast<std::size_t>(i) * stride + column];
    found[0] += (a - b) * (a - b);
    found[1] += (a - a_mean) * (b - b_mean);
    found[2] += (b - b_mean) * (b - b_mean);
    found[3] += (a - a_mean) * (a - a_mean);
  }
  for (int which = 0; which < 4; ++which) {
    const double sum = total(which, found[which]);
    if (exists && warp == 0) sums[4 * column + which] = sum;
  }
}

}  // namespace deeptail::cuda
