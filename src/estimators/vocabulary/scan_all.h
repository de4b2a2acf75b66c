// Which tokens, and pairs of them, lead to which target: one scan for all targets. Every try is a pass, of which the
// logits are looked at once for all of them.
//
// As in tokensplit (scan.h), what it misses or misjudges costs variance, never an estimate's mean.
#pragma once

#include "deeptail/watch.h"
#include "estimators/vocabulary/logit_tries.h"

namespace deeptail {

// Of one target.
struct TargetScan {
  std::vector<PlantChance> pairs =
      {};                  // chances in proportion to their worth, summing to 1; none: not scanned
  double log_guess = 0.0;  // of its probability: good to a factor of ten or so
};

// Memory that it takes, about.
double scan_all_bytes(const PlantSites& sites, std::size_t n_targets, double passes);

// passes: what it may take, about. Stopped by the watch, which is told passes, it returns nothing.
std::vector<TargetScan> scan_all(LogitTries& tries, const PlantSites& sites, std::size_t n_targets,
                                 double passes, ThreadPool& pool, const Watch& watch = {});

}  // namespace deeptail
