// Populations that fit into the memory, where the budget would pay for larger ones.
#pragma once

#include "core/memory.h"
#include "estimators/tokensplit/plan.h"

namespace deeptail {

// Sizes with levels of at most so many particles, that take at most `limit` by bytes_of(sizes); never fewer than
// kFewestFitting, which may be too many: then whoever allocates them says so.
template <class BytesOf>
Sizes fitted(const Sizes& wanted, double limit, const BytesOf& bytes_of) {
  constexpr std::size_t kFewestFitting = 32;
  Sizes sizes = wanted;
  for (std::size_t most = wanted.most(); most > kFewestFitting && bytes_of(sizes) > limit;) {
    most = std::max(kFewestFitting, most - most / 8);
    for (std::size_t& n : sizes.at_level) n = std::min(n, most);
    sizes.first_draw = std::min(wanted.first_draw, std::max(sizes.first_draw, most));
  }
  return sizes;
}

// Of the memory that a run may have, what its populations may: models, tables and scratch take some.
inline double populations_limit() { return 0.8 * memory_limit(); }

}  // namespace deeptail
