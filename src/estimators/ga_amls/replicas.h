// The runs of one ga-amls estimate, wherever its particles live.
#pragma once

#include <algorithm>
#include <cmath>

#include "estimators/ga_amls/fit.h"

namespace deeptail {

// Distances of the last survivors from the centre of the calibration cloud.
struct GaFinalParticles {
  std::vector<double> distances;
  void look(const Level& level, std::size_t dim, ConstRows u, std::span<const double> scores) {
    distances.clear();
    for (std::size_t i = 0; i < scores.size(); ++i)
      if (scores[i] >= level.level) distances.push_back(sorted_lengths(1, dim, u.from(i)).front());
  }
};

// What the replicas gave.
struct GaOutcome {
  std::vector<SplittingRun> runs;
  GaFinalParticles final;
  std::uint64_t score_evals = 0;
};

// Tells how far the replicas are, by the probability that the present one has come to.
class GaLevelMeter {
 public:
  GaLevelMeter(const GaAmlsConfig& config, const Watch& watch) : config_(config), watch_(watch) {}
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
GaOutcome run_ga_replicas(P& particles, std::size_t d, const GaAmlsConfig& config, const Watch& watch) {
  GaOutcome out;
  GaLevelMeter meter(config, watch);
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

}  // namespace deeptail
