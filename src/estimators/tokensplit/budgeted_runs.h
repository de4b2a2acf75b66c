// Pilots and replicas of one estimate, paid from its budget.
#pragma once

#include <algorithm>
#include <atomic>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/memory.h"
#include "estimators/tokensplit/fit_memory.h"
#include "estimators/tokensplit/replicas.h"
#include "estimators/tokensplit/stratum.h"

namespace deeptail {

inline void require_memory(const TokensplitConfig& config, double bytes) {
  const auto default_or = [](std::size_t n) { return n == 0 ? "default" : fmt::format("{}", n); };
  check_memory(fmt::format("tokensplit ({} particles, first draw {})", default_or(config.particles),
                           default_or(config.first_draw)),
               bytes, "take fewer particles, replicas or threads, or a smaller budget");
}

template <class Place>
class BudgetedRuns {
 public:
  static constexpr std::uint64_t kPilotPart = 0, kReplicaParts = 2;

  // config: with its budget.
  BudgetedRuns(const Place& place, const TokensplitConfig& config, std::size_t targets_at_once,
               ThreadPool& pool, const Watch& watch)
      : place_(place),
        config_(config),
        targets_at_once_(targets_at_once),
        pool_(pool),
        unit_(place.problem.score_flops()),
        meter_(unit_, config.budget, watch) {}

 protected:
  double left() const { return std::max(0.0, config_.budget - work_.flops / unit_); }  // of the budget
  void pay(const Work& work) {
    work_ += work;
    meter_.add(work.flops);
  }
  TokensplitConfig config_with(double budget, std::uint64_t seed) const {
    TokensplitConfig config = config_;
    config.budget = budget;
    config.seed = seed;
    return config;
  }
  PilotConfig pilot_of(const Stratum<Place>& s, double budget) {
    PilotConfig pilot = pilot_config(config_with(budget, s.seed), unit_);
    pilot.n_particles = fitting(s.place, {.at_level = {pilot.n_particles}}).most();
    return pilot;
  }

  // configs: [strata]. Returns false when one was stopped.
  bool run_pilots(std::span<Stratum<Place>> strata, std::span<const PilotConfig> configs) {
    std::atomic<bool> stopped = false;
    // Those that wait for scores wait together.
    ThreadPool callers(place_.waits() ? strata.size() : 1);
    callers.for_each_block(strata.size(), [&](std::size_t c, std::size_t) {
      if (stopped) return;
      Stratum<Place>& s = strata[c];
      std::optional<ThreadPool> own;
      if (callers.size() > 1) own.emplace(std::max<std::size_t>(1, pool_.size() / callers.size()));
      s.pilot = run_pilot(s.place, configs[c], derived_seed(s.seed, kPilotPart), own ? *own : pool_, meter_);
      meter_.add(s.pilot.work.flops);
      if (s.pilot.run.end == SplittingEnd::kStopped) stopped = true;
    });
    for (const Stratum<Place>& s : strata) work_ += s.pilot.work;
    return !stopped;
  }

  // budgets: [strata], with what the pilots took.
  void run_all_replicas(std::span<Stratum<Place>> strata, std::span<const double> budgets) {
    std::vector<TokensplitConfig> configs;
    for (std::size_t c = 0; c < strata.size(); ++c)
      configs.push_back(config_with(budgets[c], strata[c].seed));
    std::vector<ReplicaTask<Place>> laws;
    for (std::size_t c = 0; c < strata.size(); ++c)
      laws.push_back({{strata[c].place, configs[c], unit_, pool_, meter_, 1},
                      strata[c].pilot.plan,
                      fitting(strata[c].place, sizes_of(configs[c], strata[c].pilot, unit_, strata.size()))});
    std::vector<Replicas> replicas = run_tasks(laws);
    for (std::size_t c = 0; c < strata.size(); ++c) strata[c].replicas = std::move(replicas[c]);
  }
  std::vector<Replicas> run_tasks(std::vector<ReplicaTask<Place>>& tasks) {
    double most_bytes = 0.0;
    for (const ReplicaTask<Place>& task : tasks)
      most_bytes = std::max(most_bytes, bytes(task.run.place, task.sizes));
    require_memory(config_, most_bytes);
    const TokensplitConfig& config = tasks.front().run.config;
    for (ReplicaTask<Place>& task : tasks)
      task.run.at_once =
          fitting_at_once(place_.replicas_at_once(config, tasks.size(), pool_.size()), most_bytes);
    std::vector<Replicas> replicas = run_replicas<Place>(tasks, kReplicaParts);
    for (const Replicas& of : replicas) work_ += of.work;
    return replicas;
  }

  // Of one replica of every target.
  double bytes(const Place& place, const Sizes& sizes) const {
    return static_cast<double>(targets_at_once_) * place.bytes(sizes);
  }
  // Populations that the user did not ask for shrink to what one replica at a time has room for: a result does
  // not depend on the number of threads.
  Sizes fitting(const Place& place, const Sizes& wanted) {
    if (config_.particles > 0) return wanted;
    const Sizes sizes = fitted(wanted, populations_limit(), [&](const Sizes& s) { return bytes(place, s); });
    if (sizes.most() < wanted.most())
      memory_note_ = fmt::format(
          "there is memory for {} particles at a time, and the budget would pay for {}: a part of it was not "
          "spent",
          sizes.most(), wanted.most());
    return sizes;
  }

  const Place& place_;
  const TokensplitConfig& config_;
  std::size_t targets_at_once_;
  ThreadPool& pool_;
  double unit_;  // flops of a forward pass
  Meter meter_;
  Work work_;
  std::string memory_note_;
};

}  // namespace deeptail
