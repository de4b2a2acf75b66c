// trajectory: splitting of sampled continuations as they grow (docs/trajectory.md).
#pragma once

#include "deeptail/continuation.h"
#include "deeptail/estimators.h"

namespace [[gnu::visibility("default")]] deeptail {

struct TrajectoryConfig {
  double budget = 0.0;  // whole texts: flops over those of one that does not end early; 0: text_budget()
  std::size_t replicas = 8;
  std::size_t paths = 0;  // texts of each replica; 0: what the budget allows
  std::uint64_t seed = 1;
  std::size_t max_triggers = 3;
  void validate() const;
};

// Texts that are farthest from the pattern are given up for copies of others, which are sampled anew from where those
// first came nearer. Unbiased, whatever the score. Any law; the event's continuation must be sampled. The watch is told
// whole texts' work.
Estimate trajectory(const Transformer& model, const InputLaw& law, const ContinuationEvent& event,
                    const TrajectoryConfig& config, ThreadPool& pool, const Watch& watch = {});

}  // namespace deeptail
