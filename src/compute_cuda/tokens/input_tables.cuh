// The tables that tokens are drawn from, on the device.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "compute_cuda/dense.h"

namespace deeptail::cuda {

struct SampleTables {
  const DenseInputs::Table* tables;  // [length]
  const std::uint32_t *first_row, *guide;
  const std::uint64_t* last_unit;
  int length;
};

__host__ __device__ inline std::uint32_t draw_entry(const SampleTables& s, int position, std::uint64_t u) {
  const DenseInputs::Table table = s.tables[position];
  const std::uint64_t* last_unit = s.last_unit + table.first_entry;
  std::uint32_t i = s.guide[table.first_guide + static_cast<std::uint32_t>(u >> table.guide_shift)];
  while (last_unit[i] < u) ++i;
  return i;
}

}  // namespace deeptail::cuda
