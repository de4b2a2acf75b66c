#include "estimators/ga_amls/answer.h"

#include <algorithm>
#include <cmath>

#include "estimators/cloud.h"

namespace deeptail {

namespace {

constexpr double kStuck = 0.8;
constexpr std::size_t kFewMoves =
    900;  // as many are enough for a sum of 16 coordinates; 100 see two thirds of it

void add_distances(Estimate& e, const GaFit& fit, std::vector<double> particles) {
  if (particles.empty()) return;
  std::sort(particles.begin(), particles.end());
  const double far = quantile_of(fit.distances, 0.99);
  const auto beyond =
      static_cast<double>(particles.end() - std::upper_bound(particles.begin(), particles.end(), far));
  const double share = beyond / static_cast<double>(particles.size());
  e.diagnostics.push_back({"mahalanobis_q50", quantile_of(particles, 0.5)});
  e.diagnostics.push_back({"mahalanobis_q95", quantile_of(particles, 0.95)});
  e.diagnostics.push_back({"calibration_q50", quantile_of(fit.distances, 0.5)});
  e.diagnostics.push_back({"calibration_q95", quantile_of(fit.distances, 0.95)});
  e.diagnostics.push_back({"beyond_calibration_q99", share});
  if (share > 0.5)
    e.warnings.push_back(fmt::format(
        "{:.0f}% of the final particles lie farther out than 99% of the calibration activations: perhaps "
        "no input leads there",
        100.0 * share));
}

void add_chain_warnings(Estimate& e, const SplittingRun& run, const GaAmlsConfig& config) {
  double stuck = 0.0;  // the most that a level's particles remember of where they began it
  for (const Level& level : run.levels) stuck = std::max(stuck, level.moves.parent_correlation);
  if (stuck > kStuck)
    e.warnings.push_back(
        fmt::format("particles hardly moved within a level (correlation {:.2f} with where they began it): "
                    "more moves would help",
                    stuck));
  if (config.prior != GaPrior::kGaussian && config.kernel.steps_are_fixed() &&
      config.kernel.tail_every == 0 && config.kernel.moves < kFewMoves)
    e.warnings.push_back(
        fmt::format("{} moves per level of {} alone are few under a t prior, whose tails its steps cross "
                    "slowly: the answer may be "
                    "far too low; take some moves for the tails",
                    config.kernel.moves, name_of(config.kernel.kind)));
  if (run.end == SplittingEnd::kReached && run.levels.back().ancestors * 100 < config.n_particles)
    e.warnings.push_back(
        fmt::format("the final particles descend from {} of the first {}: more particles or replicas "
                    "would tell whether others lead there",
                    run.levels.back().ancestors, config.n_particles));
}

void summarise_runs(Estimate& e, std::vector<SplittingRun> runs, std::size_t asked) {
  // A run that was cut short says nothing, where another was finished.
  if (runs.size() > 1 && runs.back().end == SplittingEnd::kStopped) {
    runs.pop_back();
    e.warnings.push_back(fmt::format("stopped: {} of {} runs were finished", runs.size(), asked));
  }
  const ReplicaSummary summary = combine_replicas(runs, e.confidence, kNotUnbiased);
  e.log_p = summary.log_p;
  e.log_low = summary.log_low;
  e.log_high = summary.log_high;
  e.levels = runs.front().levels;
  for (const SplittingRun& run : runs) e.replica_log_p.push_back(run.log_p);
  if (std::isinf(summary.log_p))
    e.status =
        runs.front().end == SplittingEnd::kStopped ? Status::kBudgetSpent : Status::kNotReachedUpperBound;
  if (summary.extinct > 0)
    e.warnings.push_back(fmt::format("{} of {} runs did not reach the event (the first ended: {})",
                                     summary.extinct, runs.size(), name_of(runs.front().end)));
  if (summary.disagree)
    e.warnings.emplace_back(
        "the replicas differ more than their own variances explain: some may have lost a mode");
  e.diagnostics.push_back({"replica_relative_sd", summary.relative_sd});
  e.diagnostics.push_back({"genealogy_relative_sd", summary.genealogy_relative_sd});
}

}  // namespace

Estimate ga_answer(const GaProblem& problem, const GaOutcome& outcome) {
  const auto& [head, activations, target, fit, config] = problem;
  const std::size_t d = head.d_model();
  Estimate e{
      .method = "ga-amls", .target = target.ids(), .guarantee = Guarantee::kModelBased, .seed = config.seed};
  if (const std::string warning = ridge_warning(fit.whitening); !warning.empty())
    e.warnings.push_back(warning);
  if (activations.n < 10 * d)
    e.warnings.push_back(
        fmt::format("{} activations for dimension {}: the covariance is poorly known", activations.n, d));
  e.diagnostics.push_back({"ridge", fit.whitening.ridge});
  summarise_runs(e, outcome.runs, config.replicas);
  add_chain_warnings(e, outcome.runs.front(), config);
  add_distances(e, fit, outcome.final.distances);
  e.cost.score_evals = outcome.score_evals;
  e.cost.flops = 2.0 * static_cast<double>(e.cost.score_evals) * static_cast<double>(d * head.d_vocab());
  return e;
}

}  // namespace deeptail
