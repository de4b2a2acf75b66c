#include "deeptail/ga_amls.h"

#include <algorithm>
#include <cmath>

#include "core/memory.h"
#include "core/stopwatch.h"
#include "estimators/cloud.h"
#include "estimators/ga_amls/answer.h"
#include "estimators/ga_amls/many.h"
#include "estimators/head_score.h"
#include "splitting/continuous_particles.h"

namespace deeptail {

namespace {

GaOutcome run_on_cpu(const GaProblem& p, ThreadPool& pool, const Watch& watch) {
  const auto& [head, activations, target, fit, config] = p;
  const ProductPrior prior(marginal_of(config.prior), head.d_model(), config.nu);
  const Screen screen(head, std::min(activations.n, kGaCloudSample), activations.rows(), pool);
  HeadScore score(head, target, fit.whitening, fit.groups.means, screen, pool);
  ContinuousParticles particles(prior, score, config.kernel, pool, fit.cumulative(), fit.start(config.start));
  return run_ga_replicas(particles, head.d_model(), config, watch);
}

void check_ga_amls(const Head& head, const Activations& activations, const GaAmlsConfig& config) {
  config.validate();
  require_device(config.device);
  check_activations(activations, head.d_model(), "activations");
  check_memory(fmt::format("ga-amls with {} particles on {} activations", config.n_particles, activations.n),
               ga_amls_bytes(config, activations.n, head.d_model()), "take fewer particles or activations");
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
  return (residuals + static_cast<double>(std::min(n, kGaCloudSample))) * row +
         static_cast<double>(config.n_particles) * (4.0 * row + bookkeeping);
}

Estimate ga_amls(const Head& head, const Activations& activations, const Target& target,
                 const GaAmlsConfig& config, ThreadPool& pool, const Watch& watch) {
  const Stopwatch stopwatch;
  check_ga_amls(head, activations, config);
  GaFit fit;
  fit_prior(activations, config, pool, fit);
  Estimate e;
  if (config.device == Device::kCuda) {
    const GaAmlsTask task{.target = target, .seed = config.seed, .likely_log_p = config.likely_log_p};
    ga_amls_on_device({head, activations, fit, config}, {&task, 1},
                      {.on_estimate = [&](std::size_t, Estimate found) { e = std::move(found); }}, 1, pool,
                      watch);
  } else {
    const GaProblem problem{head, activations, target, fit, config};
    e = ga_answer(problem, run_on_cpu(problem, pool, watch));
  }
  e.cost.seconds = stopwatch.seconds();
  return e;
}

void ga_amls_many(const Head& head, const Activations& activations, std::span<const GaAmlsTask> tasks,
                  const GaAmlsConfig& config, const Answers& answers, std::size_t at_once, ThreadPool& pool,
                  const Watch& watch) {
  if (tasks.empty()) return;
  check_ga_amls(head, activations, config);
  if (config.device != Device::kCuda) throw std::invalid_argument("many targets at once need a device");
  GaFit fit;
  fit_prior(activations, config, pool, fit);
  ga_amls_on_device({head, activations, fit, config}, tasks, answers, at_once, pool, watch);
}

}  // namespace deeptail
