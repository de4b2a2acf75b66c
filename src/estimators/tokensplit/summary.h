// What pilot and replicas found, as an Estimate.
#pragma once

#include "deeptail/estimators.h"
#include "estimators/tokensplit/pilot.h"
#include "estimators/tokensplit/triggers.h"

namespace deeptail {

struct Replicas {
  std::vector<SplittingRun> runs;
  Work work = {};
  TriggerPool triggers = {};
  FirstDraw first = {};  // of all
};

inline bool was_stopped(const SplittingRun& run) { return run.end == SplittingEnd::kStopped; }

// By how much the lower bounds that rest on Markov's inequality shrink where replicas that disagree are run
// again. The answer is then p1, of the first run, or p2, of the second. Both are nonnegative with mean p, the
// second whatever the first one was, so Pr[answer > c p] <= Pr[p1 > c p] + Pr[p2 > c p] <= 2 / c: half of
// what one run allows, also when the first one becomes the answer.
inline double share_of_waves(bool second_possible) { return second_possible ? 0.5 : 1.0; }

void fill_cost(Estimate& e, const Work& work, double flops_per_forward);

// The pilot was stopped before it reached the event.
void fill_stopped(Estimate& e, const PilotResult& pilot);

// Takes stopped replicas out. share: of the bounds by Markov's inequality. first: the draws that pilot and
// replicas began with. starved: replicas moved less than the pilot asked for.
void fill_from_replicas(Estimate& e, Replicas& all, double share, const FirstDraw& first, bool starved);

}  // namespace deeptail
