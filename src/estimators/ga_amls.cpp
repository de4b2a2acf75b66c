#include "deeptail/ga_amls.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/memory.h"
#include "core/stopwatch.h"
#include "estimators/cloud.h"
#include "estimators/head_score.h"
#include "splitting/continuous_particles.h"

#ifdef DEEPTAIL_HAS_CUDA
#include "estimators/device_particles.h"
#endif

namespace deeptail {

namespace {

constexpr std::size_t kCloudSample = 4096;  // calibration activations that distances and the screen look at

constexpr double kStuck = 0.8;

// The prior's parts, fitted to the activations.
struct Fit {
  std::size_t n = 0;
  ConstRows x = {};  // [n, d]: what is whitened; the activations, or the groups' residuals
  Whitening whitening;
  GroupedCloud groups;            // of the conditioned prior
  std::vector<double> distances;  // [kCloudSample or n]: |u|, ascending

  std::span<const double> cumulative() const { return groups.cumulative; }
  // Only the points that are used are whitened. Refers to this fit.
  StartCloud start(GaStart where) const {
    if (where == GaStart::kPrior) return {};
    return {n,
            [this](std::size_t i, float* u) {
              whitening.whiten(1, x.from(i), {u, whitening.d});
            },
            groups.group};
  }
};

std::vector<double> lengths(std::size_t n, std::size_t d, ConstRows u) {
  std::vector<double> out(n, 0.0);
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j < d; ++j) out[i] += static_cast<double>(u.row(i)[j]) * u.row(i)[j];
    out[i] = std::sqrt(out[i]);
  }
  std::sort(out.begin(), out.end());
  return out;
}

double quantile_of(const std::vector<double>& sorted, double q) {
  return sorted[std::min(sorted.size() - 1,
                         static_cast<std::size_t>(q * static_cast<double>(sorted.size())))];
}

void fit_prior(const Activations& a, const GaAmlsConfig& config, ThreadPool& pool, Fit& fit) {
  fit.n = a.n;
  fit.x = a.rows();
  if (config.prior == GaPrior::kConditioned) {
    fit.groups = group_activations(a, config.min_group, config.relative_ridge, pool);
    fit.whitening = fit.groups.whitening;
    fit.x = {fit.groups.residuals.data(), a.d_model};
  } else {
    fit.whitening = whitening(moments(a.n, a.d_model, fit.x, pool), config.relative_ridge);
  }
  constexpr std::size_t kBlock = 64;
  const std::size_t n = std::min(a.n, kCloudSample);
  AlignedVector<float> cloud(n * a.d_model);
  pool.for_each_block((n + kBlock - 1) / kBlock, [&](std::size_t block, std::size_t) {
    const std::size_t first = block * kBlock;
    fit.whitening.whiten(std::min(kBlock, n - first), fit.x.from(first),
                         {cloud.data() + first * a.d_model, a.d_model});
  });
  fit.distances = lengths(n, a.d_model, {cloud.data(), a.d_model});
}

PriorKind marginal_of(GaPrior prior) {
  if (prior == GaPrior::kStudentT) return PriorKind::kStudentT;
  return prior == GaPrior::kGaussian ? PriorKind::kGaussian : PriorKind::kStudentTMatched;
}

// Distances of the last survivors from the centre of the calibration cloud.
struct FinalParticles {
  std::vector<double> distances;
  void look(const Level& level, std::size_t dim, ConstRows u, std::span<const double> scores) {
    distances.clear();
    for (std::size_t i = 0; i < scores.size(); ++i)
      if (scores[i] >= level.level) distances.push_back(lengths(1, dim, u.from(i)).front());
  }
};

void add_distances(Estimate& e, const Fit& fit, std::vector<double> particles) {
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
  if (run.end == SplittingEnd::kReached && run.levels.back().ancestors * 100 < config.n_particles)
    e.warnings.push_back(
        fmt::format("the final particles descend from {} of the first {}: more particles or replicas "
                    "would tell whether others lead there",
                    run.levels.back().ancestors, config.n_particles));
}

void summarise(Estimate& e, std::vector<SplittingRun> runs, std::size_t asked) {
  // A run that was cut short says nothing, where another was finished.
  if (runs.size() > 1 && runs.back().end == SplittingEnd::kStopped) {
    runs.pop_back();
    e.warnings.push_back(fmt::format("stopped: {} of {} runs were finished", runs.size(), asked));
  }
  const ReplicaSummary summary = combine_replicas(runs, e.confidence);
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

// What the replicas gave.
struct Outcome {
  std::vector<SplittingRun> runs;
  FinalParticles final;
  std::uint64_t score_evals = 0;
};

// Tells how far the replicas are, by the probability that the present one has come to.
class LevelMeter {
 public:
  LevelMeter(const GaAmlsConfig& config, const Watch& watch) : config_(config), watch_(watch) {}
  void begin(std::size_t replica) { replica_ = replica, level_ = 0, log_p_ = 0.0; }
  bool after_level(double survive_fraction) {
    log_p_ += std::log(survive_fraction);
    ++level_, ++done_;
    if (!watch_) return true;
    return watch_(at(log_p_, fmt::format("run {} of {}, level {}, p {:.1e}", replica_ + 1, config_.replicas,
                                         level_, std::exp(log_p_))));
  }
  // moved: share of the moves towards the next level.
  bool while_moving(double moved) const {
    return goes_on(watch_, at(log_p_ + moved * std::log(config_.survive_fraction), ""));
  }

 private:
  Progress at(double log_p, std::string_view note) const {
    const double of_run = std::clamp(log_p / config_.likely_log_p, 0.0, 1.0);
    const double share = (static_cast<double>(replica_) + of_run) / static_cast<double>(config_.replicas);
    return {.share = share, .done = done_, .note = note};
  }

  const GaAmlsConfig& config_;
  const Watch& watch_;
  std::size_t replica_ = 0, level_ = 0;
  std::uint64_t done_ = 0;  // levels of all replicas
  double log_p_ = 0.0;
};

template <Particles P>
Outcome run_replicas(P& particles, std::size_t d, const GaAmlsConfig& config, const Watch& watch) {
  Outcome out;
  LevelMeter meter(config, watch);
  if constexpr (requires { particles.watch({}); })
    if (watch) particles.watch([&](const Progress& moves) { return meter.while_moving(moves.share); });
  for (std::size_t replica = 0; replica < config.replicas; ++replica) {
    meter.begin(replica);
    const auto observe = [&](const Level& level, auto& population, std::span<const double> scores) {
      if (level.level >= 0.0) out.final.look(level, d, population.rows(), scores);
      return meter.after_level(level.survive_fraction);
    };
    out.runs.push_back(run_splitting(particles,
                                     {.n_particles = config.n_particles,
                                      .survive_fraction = config.survive_fraction,
                                      .max_levels = config.max_levels},
                                     derived_seed(config.seed, replica), observe));
    if (out.runs.back().end == SplittingEnd::kStopped) break;
  }
  if constexpr (requires { particles.watch({}); }) particles.watch({});
  out.score_evals = particles.score_evals();
  return out;
}

struct GaProblem {
  const Head& head;
  const Activations& activations;
  const Target& target;
  const Fit& fit;
  const GaAmlsConfig& config;
};

Outcome run_problem(const GaProblem& p, ThreadPool& pool, const Watch& watch) {
  const auto& [head, activations, target, fit, config] = p;
  const ProductPrior prior(marginal_of(config.prior), head.d_model(), config.nu);
#ifdef DEEPTAIL_HAS_CUDA
  if (config.device == Device::kCuda) {
    DeviceParticles particles({.head = head,
                               .target = target,
                               .whitening = fit.whitening,
                               .group_means = fit.groups.means,
                               .prior = prior,
                               .kernel = config.kernel,
                               .cumulative = fit.cumulative(),
                               .start = fit.start(config.start)},
                              config.n_particles, pool);
    return run_replicas(particles, head.d_model(), config, watch);
  }
#endif
  const Screen screen(head, std::min(activations.n, kCloudSample), activations.rows(), pool);
  HeadScore score(head, target, fit.whitening, fit.groups.means, screen, pool);
  ContinuousParticles particles(prior, score, config.kernel, pool, fit.cumulative(), fit.start(config.start));
  return run_replicas(particles, head.d_model(), config, watch);
}

}  // namespace

void GaAmlsConfig::validate() const {
  if (replicas == 0 || replicas > kMostReplicas)
    throw InputError("{} replicas: expected 1 to {}", replicas, kMostReplicas);
  if (nu < 1) throw InputError("{} degrees of freedom: expected at least 1", nu);
  if (!(relative_ridge >= 0.0) || !std::isfinite(relative_ridge))
    throw InputError("ridge {}: expected a number from 0", relative_ridge);
  kernel.validate();
  SplittingConfig{.n_particles = n_particles, .survive_fraction = survive_fraction, .max_levels = max_levels}
      .validate();
}

double ga_amls_bytes(const GaAmlsConfig& config, std::size_t n, std::size_t d_model) {
  // Of a particle: its place now, before the level and before resampling, its gradient, its bookkeeping.
  const double row = sizeof(float) * static_cast<double>(d_model), bookkeeping = 64.0;
  const double residuals = config.prior == GaPrior::kConditioned ? static_cast<double>(n) : 0.0;
  return (residuals + static_cast<double>(std::min(n, kCloudSample))) * row +
         static_cast<double>(config.n_particles) * (4.0 * row + bookkeeping);
}

Estimate ga_amls(const Head& head, const Activations& activations, const Target& target,
                 const GaAmlsConfig& config, ThreadPool& pool, const Watch& watch) {
  config.validate();
  const Stopwatch stopwatch;
  require_device(config.device);
  check_activations(activations, head.d_model(), "activations");
  const std::size_t d = head.d_model();
  check_memory(fmt::format("ga-amls with {} particles on {} activations", config.n_particles, activations.n),
               ga_amls_bytes(config, activations.n, d), "take fewer particles or activations");
  Estimate e{
      .method = "ga-amls", .target = target.ids(), .guarantee = Guarantee::kModelBased, .seed = config.seed};
  Fit fit;
  fit_prior(activations, config, pool, fit);
  if (const std::string warning = ridge_warning(fit.whitening); !warning.empty())
    e.warnings.push_back(warning);
  if (activations.n < 10 * d)
    e.warnings.push_back(
        fmt::format("{} activations for dimension {}: the covariance is poorly known", activations.n, d));
  e.diagnostics.push_back({"ridge", fit.whitening.ridge});

  const Outcome outcome = run_problem({head, activations, target, fit, config}, pool, watch);
  summarise(e, outcome.runs, config.replicas);
  add_chain_warnings(e, outcome.runs.front(), config);
  add_distances(e, fit, outcome.final.distances);
  e.cost.score_evals = outcome.score_evals;
  e.cost.flops = 2.0 * static_cast<double>(e.cost.score_evals) * static_cast<double>(d * head.d_vocab());
  e.cost.seconds = stopwatch.seconds();
  return e;
}

}  // namespace deeptail
