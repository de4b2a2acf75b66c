#include "estimators/tokensplit/replicas.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace deeptail {

namespace {

// Every level moves as the pilot settled, unless it is told to stop.
class ReplicaPolicy final : public MovePolicy {
 public:
  ReplicaPolicy(const Plan& plan, Meter& meter) : plan_(plan), meter_(meter) {}
  bool goes_on(const Work&) override {
    stopped_ = !meter_.goes_on();
    return !stopped_;
  }
  const MoveSettings& begin(const LevelView& at, ScoreHints) override { return plan_.settings[at.number]; }
  std::size_t how_far(const LevelView& at, std::size_t made) override {
    if (made > 0) stopped_ = !meter_.goes_on();
    return stopped_ ? 0 : std::min(at.at_once, plan_.settings[at.number].n_moves - made);
  }
  bool stopped() const override { return stopped_; }

 private:
  const Plan& plan_;
  Meter& meter_;
  bool stopped_ = false;
};

struct Replica {
  SplittingRun run = {.end = SplittingEnd::kStopped, .log_p = -std::numeric_limits<double>::infinity()};
  Work work = {};
  TriggerPool triggers = {};
};

template <class Place>
Replica run_replica(const TokensplitRun<Place>& run, const Plan& plan, const Sizes& sizes, std::uint64_t seed,
                    ThreadPool& pool) {
  Replica replica;
  if (!run.meter.goes_on()) return replica;
  ReplicaPolicy policy(plan, run.meter);
  auto particles = run.place.population(sizes.most(), policy, pool);
  double told = 0.0;
  const auto observe = [&](const Level& level, const auto& p, std::span<const double> scores) {
    if (level.level >= 0.0) replica.triggers.add(p.inputs(), scores);
    const double now = p.work().flops;
    return run.meter.add(now - std::exchange(told, now));
  };
  const SplittingConfig splitting{.n_particles = sizes.at_level.back(),
                                  .initial_particles = sizes.first_draw,
                                  .sizes = sizes.at_level,
                                  .levels = plan.levels};
  replica.run = run_splitting(particles, splitting, seed, observe);
  replica.work = particles.work();
  return replica;
}

}  // namespace

template <class Place>
Replicas run_replicas(const TokensplitRun<Place>& run, const Plan& plan, const Sizes& sizes,
                      std::uint64_t first_part) {
  std::vector<Replica> replicas(run.config.replicas);
  ThreadPool outer(run.place.replicas_at_once(run.config, run.pool.size()));
  const std::size_t inner_threads = std::max<std::size_t>(1, run.pool.size() / outer.size());
  outer.for_each_block(replicas.size(), [&](std::size_t r, std::size_t) {
    ThreadPool inner(inner_threads);
    replicas[r] = run_replica(run, plan, sizes, derived_seed(run.config.seed, first_part + r), inner);
  });
  Replicas all;
  for (Replica& replica : replicas) {
    all.work += replica.work;
    all.triggers.append(replica.triggers);
    all.first += replica.run.first;
    all.runs.push_back(std::move(replica.run));
  }
  return all;
}
template Replicas run_replicas(const TokensplitRun<CpuPlace>&, const Plan&, const Sizes&, std::uint64_t);
template Replicas run_replicas(const TokensplitRun<ServedPlace>&, const Plan&, const Sizes&, std::uint64_t);

}  // namespace deeptail
