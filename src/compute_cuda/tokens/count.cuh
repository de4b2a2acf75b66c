// Counting what was said.
#pragma once

#include <cstdint>

namespace deeptail::cuda {

// Adds [n] tokens said to counts; where verdicts are wanted input by input, said of sample number i goes to
// at[i - first].
__global__ void count_said(std::uint32_t n, const std::uint32_t* said, const std::uint64_t* numbers,
                           std::uint64_t first, unsigned long long* counts, std::uint32_t* at) {
  const std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  atomicAdd(counts + said[i], 1ULL);
  if (at != nullptr) at[numbers != nullptr ? numbers[i] - first : i] = said[i];
}

}  // namespace deeptail::cuda
