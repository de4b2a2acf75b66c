#include "estimators/tokensplit/replicas.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "estimators/tokensplit/keep_hits.h"

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

// What the event's payers are paid for: those that pay most.
template <class Population>
void keep_paid(const Population& population, std::span<const std::uint32_t> who,
               std::span<const double> log_payoffs, TriggerPool& triggers) {
  std::vector<double> margins(population.size());
  std::vector<std::uint32_t> paid;
  std::vector<double> log_parts;
  for (std::size_t i = 0; i < who.size(); ++i) {
    if (population.paid_answers().length_of(who[i]) == 0) continue;
    paid.push_back(who[i]);
    log_parts.push_back(log_payoffs[i]);
    margins[who[i]] = log_payoffs[i];
  }
  triggers.add(population.inputs(), population.paid_answers(), paid, margins, log_parts);
}

template <class Population>
void keep_payers(const Population& population, std::span<const double> scores, double level,
                 TriggerPool& triggers) {
  std::vector<std::uint32_t> payers;
  for (std::size_t i = 0; i < scores.size(); ++i)
    if (scores[i] >= level) payers.push_back(static_cast<std::uint32_t>(i));
  std::vector<double> log_payoffs(payers.size());
  population.log_payoffs(payers, log_payoffs);
  keep_paid(population, payers, log_payoffs, triggers);
}

template <class Place>
Replica run_replica(const TokensplitRun<Place>& run, const Plan& plan, const Sizes& sizes, std::uint64_t seed,
                    ThreadPool& pool) {
  Replica replica;
  if (!run.meter.goes_on()) return replica;
  ReplicaPolicy policy(plan, run.meter);
  auto particles = run.place.population(sizes.most(), policy, pool);
  double told = 0.0, log_reach = 0.0;
  const auto observe = [&](const Level& level, const auto& p, std::span<const double> scores) {
    log_reach += std::log(level.survive_fraction);
    if (level.level >= plan.levels.back()) {
      if (p.pays_below())
        keep_payers(p, scores, level.level, replica.triggers);
      else
        keep_hits(p, scores, level.level, log_reach, replica.triggers);
    }
    const double now = p.work().flops;
    return run.meter.add(now - std::exchange(told, now));
  };
  const SplittingConfig splitting{.n_particles = sizes.at_level.back(),
                                  .initial_particles = sizes.first_draw,
                                  .sizes = sizes.at_level,
                                  .threshold = plan.levels.back(),
                                  .levels = plan.levels};
  replica.run = run_splitting(particles, splitting, seed, observe);
  replica.work = particles.work();
  return replica;
}

}  // namespace

template <class Place>
std::vector<Replicas> run_replicas(std::span<const ReplicaTask<Place>> laws, std::uint64_t first_part) {
  const TokensplitRun<Place>& any = laws.front().run;
  const std::size_t n = any.config.replicas;
  std::vector<Replica> replicas(laws.size() * n);  // [laws, n]
  ThreadPool outer(any.at_once > 0 ? any.at_once
                                   : any.place.replicas_at_once(any.config, laws.size(), any.pool.size()));
  const std::size_t inner_threads = std::max<std::size_t>(1, any.pool.size() / outer.size());
  outer.for_each_block(replicas.size(), [&](std::size_t i, std::size_t) {
    const std::size_t r = i / laws.size(), c = i % laws.size();
    const ReplicaTask<Place>& law = laws[c];
    ThreadPool inner(inner_threads);
    replicas[c * n + r] =
        run_replica(law.run, law.plan, law.sizes, derived_seed(law.run.config.seed, first_part + r), inner);
  });
  std::vector<Replicas> all(laws.size());
  for (std::size_t i = 0; i < replicas.size(); ++i) {
    Replicas& of_law = all[i / n];
    of_law.work += replicas[i].work;
    of_law.triggers.push_back(std::move(replicas[i].triggers));
    of_law.first += replicas[i].run.first;
    of_law.runs.push_back(std::move(replicas[i].run));
  }
  return all;
}
template std::vector<Replicas> run_replicas(std::span<const ReplicaTask<CpuPlace>>, std::uint64_t);
template std::vector<Replicas> run_replicas(std::span<const ReplicaTask<ServedPlace>>, std::uint64_t);

}  // namespace deeptail
