#include "estimators/tokensplit/summary.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace deeptail {

namespace {

// Levels of all replicas as one history: fractions averaged in the way of the pilot's, counts summed.
std::vector<Level> history(const std::vector<SplittingRun>& runs) {
  std::vector<Level> levels;
  for (const SplittingRun& run : runs)
    for (std::size_t k = 0; k < run.levels.size(); ++k) {
      if (k == levels.size()) levels.push_back({.level = run.levels[k].level});
      const Level& from = run.levels[k];
      Level& to = levels[k];
      to.particles += from.particles;
      to.survivors += from.survivors;
      to.ancestors += from.ancestors;
      to.sibling_correlation += from.sibling_correlation / static_cast<double>(runs.size());
      to.moves.proposed += from.moves.proposed;
      to.moves.accepted += from.moves.accepted;
      to.moves.moves = std::max(to.moves.moves, from.moves.moves);
    }
  for (Level& level : levels)
    level.survive_fraction = static_cast<double>(level.survivors) / static_cast<double>(level.particles);
  return levels;
}

// The first draws bound p whatever came after them. Where the replicas' spread does not tell the upper end,
// it is theirs; elsewhere it is never above what they allow, with a tenth of the interval's own chance to
// miss.
void bound_by_first_draws(Estimate& e, const ReplicaSummary& s, std::size_t replicas, const FirstDraw& first,
                          bool starved) {
  const bool all = s.extinct == replicas, badly = 2 * s.extinct > replicas || (starved && s.extinct > 0);
  if (s.extinct > 0)
    e.warnings.push_back(fmt::format("{} of {} replicas died out and count as 0", s.extinct, replicas));
  if (!badly) {
    const double most = first.log_upper(1.0 - 0.1 * (1.0 - e.confidence));
    e.log_high = std::max(e.log_p, std::min(e.log_high, most));
    return;
  }
  e.log_high = std::max(e.log_p, first.log_upper(all ? e.confidence : 0.5 * (1.0 + e.confidence)));
  e.warnings.push_back(
      fmt::format("{}, and the upper end is what the {} independent first draws allow",
                  all ? "0 is no estimate"
                      : "with so many lost, the spread of the others does not tell how large p may be",
                  first.n));
}

}  // namespace

void fill_cost(Estimate& e, const Work& work, double unit) {
  e.cost.forward = work.forwards;
  e.cost.score_evals = work.rescored;
  e.cost.logits = work.logits;
  e.cost.flops = work.flops;
  e.cost.forward_equivalents = work.flops / unit;
}

void fill_stopped(Estimate& e, const PilotResult& pilot) {
  e.log_p = e.log_low = -std::numeric_limits<double>::infinity();
  e.log_high = pilot.run.first.log_upper(e.confidence);
  e.status = Status::kBudgetSpent;
  e.guarantee = Guarantee::kConsistent;
  e.levels = pilot.run.levels;
  e.warnings.push_back(pilot.run.levels.empty()
                           ? "the pilot was stopped at its first draw: nothing is known"
                           : fmt::format("the pilot was stopped at margin {:.3g}, below 0: all that is known "
                                         "is the bound by its first draw",
                                         pilot.run.levels.back().level));
}

void fill_from_replicas(Estimate& e, Replicas& all, double share, const FirstDraw& first, bool starved) {
  const std::size_t asked = all.runs.size();
  std::erase_if(all.runs, was_stopped);
  if (all.runs.size() < asked) {
    // Those that were fast are not a fair sample of all.
    e.guarantee = Guarantee::kConsistent;
    e.warnings.push_back(fmt::format("stopped: {} of {} replicas were finished", all.runs.size(), asked));
  }
  if (all.runs.empty()) {
    e.log_p = e.log_low = -std::numeric_limits<double>::infinity();
    e.log_high = first.log_upper(e.confidence);
    e.status = Status::kBudgetSpent;
    return;
  }
  const ReplicaSummary s = combine_replicas(
      all.runs, e.confidence, share * static_cast<double>(all.runs.size()) / static_cast<double>(asked));
  e.log_p = s.log_p;
  e.log_low = s.log_low;
  e.log_high = s.log_high;
  e.log_certain_low = s.log_certain_low;
  e.diagnostics = {{"relative_sd", s.relative_sd},
                   {"genealogy_relative_sd", s.genealogy_relative_sd},
                   {"extinct_replicas", static_cast<double>(s.extinct)}};
  for (const SplittingRun& run : all.runs) e.replica_log_p.push_back(run.log_p);
  e.levels = history(all.runs);
  if (s.extinct == all.runs.size()) e.status = Status::kExtinct;
  bound_by_first_draws(e, s, all.runs.size(), first, starved);
  if (s.disagree)
    e.warnings.emplace_back(
        "the replicas disagree more than their own genealogies explain: a mode may be missing; more "
        "particles, of a larger budget, would help");
}

}  // namespace deeptail
