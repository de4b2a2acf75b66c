// What pilot and replicas found, as an Estimate.
#pragma once

#include "deeptail/estimators.h"
#include "estimators/tokensplit/pilot.h"
#include "estimators/tokensplit/triggers.h"

namespace deeptail {

struct Replicas {
  std::vector<SplittingRun> runs;
  Work work = {};
  std::vector<TriggerPool> triggers = {};  // [runs]
  FirstDraw first = {};                    // of all

  void append(Replicas others);
  void forget(std::size_t r);  // replica r counts as 0
};

inline bool was_stopped(const SplittingRun& run) { return run.end == SplittingEnd::kStopped; }

// One of the laws that an estimate ran under.
struct StratumRuns {
  double share;  // of the mixture
  const PilotResult& pilot;
  Replicas& replicas;
};

// Levels of all replicas as one history: counts summed.
std::vector<Level> history(const std::vector<SplittingRun>& runs);

void fill_cost(Estimate& e, const Work& work, double flops_per_forward);

// The pilot was stopped before it reached the event.
void fill_stopped(Estimate& e, const PilotResult& pilot);

// Replica r of the answer is the sum of every law's r-th, by their shares. Takes the replicas out of the runs
// and returns those that were finished, as they were combined. prior: where the law is tables; else null.
// found: what each replica found before it learnt from others, where it did; these all see what one of them found.
Replicas fill_from_strata(Estimate& e, std::vector<StratumRuns>& strata, const Distribution* prior,
                          std::span<const TriggerPool> found = {});

}  // namespace deeptail
