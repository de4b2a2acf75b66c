// Independent runs on the pilot's frozen levels and moves.
#pragma once

#include <cstdint>

#include "estimators/tokensplit/meter.h"
#include "estimators/tokensplit/place.h"
#include "estimators/tokensplit/summary.h"

namespace deeptail {

// One estimate under way.
template <class Place>
struct TokensplitRun {
  const Place& place;
  const TokensplitConfig& config;  // with its budget
  double unit;                     // flops of a forward pass
  ThreadPool& pool;
  Meter& meter;
};

// first_part: their seeds are those of parts [first_part, first_part + replicas).
template <class Place>
Replicas run_replicas(const TokensplitRun<Place>& run, const Plan& plan, const Sizes& sizes,
                      std::uint64_t first_part);

}  // namespace deeptail
