#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string_view>

#include "deeptail/compute.h"

namespace deeptail {

inline AlignedVector<float> random_values(std::size_t n, unsigned seed, float scale = 1.0f) {
  std::mt19937 engine(seed);
  std::normal_distribution<float> normal(0.0f, scale);
  AlignedVector<float> out(n);
  for (float& v : out) v = normal(engine);
  return out;
}

// The scalar reference states a chain of fused multiply-adds; a CPU without FMA rounds twice in each.
inline bool has_fma() { return std::string_view(simd_name()).starts_with("AVX"); }

inline void expect_same(float found, float expected) {
  if (found == expected) return;  // before the question what the CPU can do, which takes long
  if (has_fma())
    EXPECT_EQ(found, expected);
  else
    EXPECT_NEAR(found, expected, 1e-4f * (1.0f + std::abs(expected)));
}

}  // namespace deeptail
