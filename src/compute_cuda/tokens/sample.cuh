// Inputs on the device: the same numbers as on the CPU (core/random.h), so the same tokens.
#pragma once

#include "compute_cuda/keyed_numbers.cuh"
#include "compute_cuda/tokens/input_tables.cuh"

namespace deeptail::cuda {

// rows: [n, length] = the (position, token) pairs of samples numbers[0..n), or [first, first + n) where there
// is no list.
__global__ void sample_rows(SampleTables s, std::uint64_t seed, const std::uint64_t* numbers,
                            std::uint64_t first, std::uint32_t n, std::uint32_t* rows) {
  const int pairs = (s.length + 1) / 2;
  const std::uint64_t total = static_cast<std::uint64_t>(n) * pairs;
  for (std::uint64_t i = blockIdx.x * static_cast<std::uint64_t>(blockDim.x) + threadIdx.x; i < total;
       i += static_cast<std::uint64_t>(gridDim.x) * blockDim.x) {
    const std::uint32_t sample = static_cast<std::uint32_t>(i / pairs),
                        pair = static_cast<std::uint32_t>(i % pairs);
    const std::uint64_t index = numbers != nullptr ? numbers[sample] : first + sample;
    const r123::Philox4x32::ctr_type w = keyed_words({seed, index}, Stream::kInputs, pair);
    const int position = static_cast<int>(2 * pair);
    std::uint32_t* out = rows + static_cast<std::uint64_t>(sample) * s.length + position;
    out[0] = s.first_row[position] + draw_entry(s, position, even_slot(w));
    if (position + 1 < s.length)
      out[1] = s.first_row[position + 1] + draw_entry(s, position + 1, odd_slot(w));
  }
}

}  // namespace deeptail::cuda
