// Inputs on the device: the same numbers as on the CPU (core/random.h), so the same tokens.
#pragma once

#include <Random123/philox.h>

#include <cstdint>

#include "compute_cuda/input_tables.cuh"

namespace deeptail::cuda {

// rows: [n, length] = the (position, token) pairs of samples numbers[0..n), or [first, first + n) where there
// is no list.
__global__ void sample_rows(SampleTables s, std::uint64_t seed, const std::uint64_t* numbers,
                            std::uint64_t first, std::uint32_t n, std::uint32_t* rows) {
  constexpr std::uint32_t kInputs = 1;  // Stream::kInputs
  const int pairs = (s.length + 1) / 2;
  const std::uint64_t total = static_cast<std::uint64_t>(n) * pairs;
  for (std::uint64_t i = blockIdx.x * static_cast<std::uint64_t>(blockDim.x) + threadIdx.x; i < total;
       i += static_cast<std::uint64_t>(gridDim.x) * blockDim.x) {
    const std::uint32_t sample = static_cast<std::uint32_t>(i / pairs),
                        pair = static_cast<std::uint32_t>(i % pairs);
    const std::uint64_t index = numbers != nullptr ? numbers[sample] : first + sample;
    const r123::Philox4x32::ctr_type counter = {
        {static_cast<std::uint32_t>(index), static_cast<std::uint32_t>(index >> 32), pair, kInputs}};
    const r123::Philox4x32::key_type key = {
        {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)}};
    const r123::Philox4x32::ctr_type w = r123::Philox4x32()(counter, key);
    const int position = static_cast<int>(2 * pair);
    std::uint32_t* out = rows + static_cast<std::uint64_t>(sample) * s.length + position;
    out[0] = s.first_row[position] + draw_entry(s, position, w[0] | static_cast<std::uint64_t>(w[1]) << 32);
    if (position + 1 < s.length)
      out[1] = s.first_row[position + 1] +
               draw_entry(s, position + 1, w[2] | static_cast<std::uint64_t>(w[3]) << 32);
  }
}

}  // namespace deeptail::cuda
