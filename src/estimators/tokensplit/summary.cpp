#include "estimators/tokensplit/summary.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <utility>

#include "estimators/tokensplit/modes.h"

namespace deeptail {

void Replicas::append(Replicas others) {
  std::move(others.runs.begin(), others.runs.end(), std::back_inserter(runs));
  std::move(others.triggers.begin(), others.triggers.end(), std::back_inserter(triggers));
  work += others.work;
  first += others.first;
}

void Replicas::forget(std::size_t r) {
  triggers[r] = {};
  runs[r].log_p = -std::numeric_limits<double>::infinity();
  runs[r].end = SplittingEnd::kExtinct;
}

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

namespace {

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

namespace {

// Stopped ones count for nothing, and those that were fast are not a fair sample of all.
void drop_stopped(Estimate& e, Replicas& all) {
  const std::size_t asked = all.runs.size();
  std::size_t kept = 0;
  for (std::size_t r = 0; r < asked; ++r) {
    if (was_stopped(all.runs[r])) continue;
    std::swap(all.runs[kept], all.runs[r]);
    std::swap(all.triggers[kept++], all.triggers[r]);
  }
  all.runs.resize(kept);
  all.triggers.resize(kept);
  if (kept == asked) return;
  e.guarantee = Guarantee::kConsistent;
  e.warnings.push_back(fmt::format("stopped: {} of {} replicas were finished", kept, asked));
}

void fill_nothing(Estimate& e, const FirstDraw& first) {
  e.log_p = e.log_low = -std::numeric_limits<double>::infinity();
  e.log_high = first.log_upper(e.confidence);
  e.status = Status::kBudgetSpent;
}

// Mass that no replica saw cannot be computed. Parts that only one saw say how much there may be (Good and
// Turing; the factor makes up for the noise of a sum that few terms dominate), and a floor stands for the
// rest.
void add_unseen(Estimate& e, const Replicas& all, std::span<const TriggerPool> found,
                const Distribution& prior) {
  constexpr double kFloor = 1.05;
  const ModeCount modes = count_modes(found.empty() ? all.triggers : found, prior);
  const double factor = 0.5 * (static_cast<double>(all.runs.size()) - 1.0);
  const double seen = std::max(e.log_high, e.log_p + std::log(kFloor));
  e.log_high = std::min(0.0, log_add(seen, e.log_p + std::log(factor * modes.unseen_share)));
  e.diagnostics.insert(e.diagnostics.end(), {{"modes", static_cast<double>(modes.modes)},
                                             {"modes_seen_by_all", static_cast<double>(modes.seen_by_all)},
                                             {"modes_seen_by_one", static_cast<double>(modes.seen_by_one)},
                                             {"unseen_share", modes.unseen_share}});
  constexpr double kMuch = 0.1;
  if (modes.unseen_share > kMuch)
    e.warnings.push_back(fmt::format(
        "{:.0f} % of the answer comes from kinds of inputs that one replica of {} saw: others may "
        "have been missed; a larger budget would tell",
        100.0 * modes.unseen_share, all.runs.size()));
}

// asked: replicas that were to run. starved: they moved less than a pilot asked for.
void fill_from_replicas(Estimate& e, const Replicas& all, std::span<const TriggerPool> found,
                        std::size_t asked, bool starved, const Distribution* prior) {
  const double finished = static_cast<double>(all.runs.size()) / static_cast<double>(asked);
  const ReplicaSummary s = combine_replicas(all.runs, e.confidence, finished);
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
  const bool levels = all.runs.front().levels.size() > 1 || all.runs.front().weighted;
  if (prior != nullptr && levels && s.extinct < all.runs.size()) add_unseen(e, all, found, *prior);
  bound_by_first_draws(e, s, all.runs.size(), all.first, starved);
  constexpr double kWideSpread = 0.25;
  if (starved && !(s.relative_sd < kWideSpread))
    e.warnings.emplace_back(
        "the budget is small: fewer particles and moves than the pilot asked for, and the replicas spread");
  if (s.disagree)
    e.warnings.emplace_back(
        "the replicas disagree more than their own genealogies explain: a mode may be missing; more "
        "particles, of a larger budget, would help");
}

// Replica r of each law, weighted by its share, as one run.
SplittingRun sum_of(const std::vector<StratumRuns>& strata, std::size_t r) {
  SplittingRun sum{.end = SplittingEnd::kExtinct, .log_p = -std::numeric_limits<double>::infinity()};
  sum.weighted = true;
  bool stopped = false;
  double largest = -std::numeric_limits<double>::infinity();
  for (const StratumRuns& s : strata) {
    const SplittingRun& run = s.replicas.runs[r];
    const double log_part = std::log(s.share) + run.log_p;
    stopped = stopped || was_stopped(run);
    if (run.end == SplittingEnd::kReached) sum.end = SplittingEnd::kReached;
    sum.log_p = log_add(sum.log_p, log_part);
    if (sum.levels.empty() || log_part > largest) {
      sum.levels = run.levels;
      sum.effective_share = run.effective_share;
      largest = log_part;
    }
  }
  if (stopped) sum.end = SplittingEnd::kStopped;
  if (sum.end != SplittingEnd::kReached) return sum;
  for (const StratumRuns& s : strata) {
    const SplittingRun& run = s.replicas.runs[r];
    const double square = std::exp(2.0 * (std::log(s.share) + run.log_p - sum.log_p));
    sum.genealogy_variance += square * run.genealogy_variance;
    sum.level_variance += square * run.level_variance;
  }
  return sum;
}

// Of all laws together; first draws are the first one's, which leaves no input out.
Replicas combined(std::vector<StratumRuns>& strata) {
  if (strata.size() == 1) {
    Replicas all = std::move(strata.front().replicas);
    all.first += strata.front().pilot.run.first;
    return all;
  }
  Replicas all{.runs = {}, .first = strata.front().replicas.first};
  all.first += strata.front().pilot.run.first;
  for (std::size_t r = 0; r < strata.front().replicas.runs.size(); ++r) {
    all.runs.push_back(sum_of(strata, r));
    TriggerPool& pool = all.triggers.emplace_back();
    for (const StratumRuns& s : strata) {
      s.replicas.triggers[r].scale(std::log(s.share));
      pool.append(s.replicas.triggers[r]);
    }
  }
  return all;
}

// What each law's runs are of the answer.
void fill_shares(Estimate& e, const std::vector<StratumRuns>& strata) {
  if (strata.size() < 2) return;
  std::vector<double> log_parts;
  double sum = -std::numeric_limits<double>::infinity();
  for (const StratumRuns& s : strata) {
    double part = -std::numeric_limits<double>::infinity();
    for (const SplittingRun& run : s.replicas.runs) part = log_add(part, run.log_p);
    log_parts.push_back(part + std::log(s.share));
    sum = log_add(sum, log_parts.back());
  }
  if (std::isinf(sum)) return;
  constexpr const char* kNames[] = {"", "scanned_share", "learnt_share"};
  for (std::size_t c = 1; c < strata.size(); ++c)
    e.diagnostics.push_back({kNames[c], std::exp(log_parts[c] - sum)});
}

void warn_of_pilots(Estimate& e, const std::vector<StratumRuns>& strata) {
  const PilotResult& first = strata.front().pilot;
  if (first.run.end != SplittingEnd::kReached)
    e.warnings.push_back(
        fmt::format("the pilot ended ({}) below the event: from there on the replicas found it, or not, by "
                    "sampling alone",
                    name_of(first.run.end)));
}

}  // namespace

Replicas fill_from_strata(Estimate& e, std::vector<StratumRuns>& strata, const Distribution* prior,
                          std::span<const TriggerPool> found) {
  warn_of_pilots(e, strata);
  std::vector<std::pair<std::string, double>> shares;
  fill_shares(e, strata);
  shares = std::move(e.diagnostics);
  const bool reached = std::any_of(strata.begin(), strata.end(), [](const StratumRuns& s) {
    return s.pilot.run.end == SplittingEnd::kReached;
  });
  const bool starved =
      std::any_of(strata.begin(), strata.end(), [](const StratumRuns& s) { return s.pilot.plan.starved; });
  Replicas all = combined(strata);
  const std::size_t asked = all.runs.size();
  drop_stopped(e, all);
  if (all.runs.empty()) {
    fill_nothing(e, all.first);
    if (reached) e.warnings.push_back("the pilot reached the event; nothing is known of its error");
  } else {
    fill_from_replicas(e, all, found, asked, starved, prior);
  }
  e.diagnostics.insert(e.diagnostics.end(), shares.begin(), shares.end());
  if (!reached && e.status == Status::kExtinct) e.status = Status::kNotReachedUpperBound;
  return all;
}

}  // namespace deeptail
