// Where continuous particles start: at draws from the prior, or at points of a cloud.
#pragma once

#include <functional>

#include "deeptail/prior.h"

namespace deeptail {

// Points from which particles start instead of draws from the prior.
struct StartCloud {
  std::size_t n = 0;                                      // 0: no cloud
  std::function<void(std::size_t i, float* u)> row = {};  // u: [dim] = point i; called by several threads
  std::span<const std::uint32_t> groups = {};             // [n], or empty
};

struct StartPoints {
  AlignedVector<float> u;             // [n, dim]
  std::vector<std::uint32_t> groups;  // [n], or empty
};

// cumulative: of the groups' probabilities, empty without groups.
StartPoints draw_start(const ProductPrior& prior, std::span<const double> cumulative, const StartCloud& cloud,
                       std::size_t n, std::uint64_t seed, ThreadPool& pool);

}  // namespace deeptail
