// Populations that fit into the memory, where the budget would pay for larger ones.
#pragma once

#include <algorithm>

#include "core/memory.h"
#include "estimators/tokensplit/plan.h"

namespace deeptail {

// Of the memory that a run may have, what its populations may: models, tables and scratch take some.
inline double populations_limit() { return 0.8 * memory_limit(); }

// Levels of at most so many particles that bytes_of(sizes) keeps the limit; never fewer than kFewestFitting, which may
// be too many: whoever allocates them says so.
template <class BytesOf>
Sizes fitted(const Sizes& wanted, double limit, const BytesOf& bytes_of) {
  constexpr std::size_t kFewestFitting = 32;
  Sizes sizes = wanted;
  for (std::size_t most = wanted.most(); most > kFewestFitting && bytes_of(sizes) > limit;) {
    most = std::max(kFewestFitting, most - std::max<std::size_t>(1, most / 8));
    for (std::size_t& n : sizes.at_level) n = std::min(n, most);
  }
  return sizes;
}

// Of `wanted` replicas, how many there is room for side by side; at least one.
inline std::size_t fitting_at_once(std::size_t wanted, double bytes_of_one) {
  if (bytes_of_one <= 0.0) return wanted;
  const double room = populations_limit() / bytes_of_one;
  return room >= static_cast<double>(wanted) ? wanted
                                             : std::max<std::size_t>(1, static_cast<std::size_t>(room));
}

}  // namespace deeptail
