// Independent runs on the pilot's frozen levels and moves.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

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
  std::size_t at_once = 0;  // replicas side by side; 0: as many as the place has
};

// A law that replicas run under.
template <class Place>
struct ReplicaTask {
  TokensplitRun<Place> run;
  const Plan& plan;
  Sizes sizes;
};

// Of every law; the r-th of all of them one after the other, so that a run that is stopped has whole ones.
// first_part: their seeds are those of parts [first_part, first_part + replicas) of each law's own.
template <class Place>
std::vector<Replicas> run_replicas(std::span<const ReplicaTask<Place>> laws, std::uint64_t first_part);

}  // namespace deeptail
