// Which pairs of tokens lead to the event: every pair of two positions, tried in a few contexts.
//
// What it finds is where particles are sent (mixture.h); whatever it misses or misjudges costs variance,
// never the estimate's mean.
#pragma once

#include <optional>

#include "estimators/tokensplit/place.h"
#include "inputs/joint_tables.h"

namespace deeptail {

struct ScanResult {
  std::optional<TupleTable> pairs = {};  // none where there is nothing to scan, or no budget for it
  Work work = {};
};

// The last two positions of the law's tables that are free. flops: what it may take, about.
template <class Place>
ScanResult scan_pairs(const Place& place, double flops, std::uint64_t seed, ThreadPool& pool);

}  // namespace deeptail
