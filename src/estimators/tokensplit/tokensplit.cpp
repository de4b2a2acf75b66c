// tokensplit: pilot, plan, replicas, one estimate.
#include "estimators/tokensplit/tokensplit.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <mutex>
#include <utility>

#include "core/memory.h"
#include "deeptail/activations.h"
#include "estimators/input_screen.h"
#include "estimators/tokensplit/plan.h"
#include "estimators/tokensplit/summary.h"

namespace deeptail {

namespace {

constexpr std::uint64_t kPilotPart = 0, kScreenPart = 1, kReplicaParts = 2, kSecondWaveParts = 1 << 16;
constexpr std::size_t kDecidingPositions = 4;
constexpr std::size_t kMostWaiting = 64;  // replicas of one target that a service has at a time

// Work of all threads, and whether to go on.
class Meter {
 public:
  Meter(double flops_per_forward, const KeepGoing& keep_going)
      : unit_(flops_per_forward), keep_going_(keep_going) {}
  // The pilot's work so far, then the work of finished levels of the replicas. False when the user wants to
  // stop.
  bool tell(double flops) {
    const std::lock_guard lock(mutex_);
    most_ = std::max(most_, flops / unit_);
    if (keep_going_ && go_ && !keep_going_(static_cast<std::uint64_t>(most_))) go_ = false;
    return go_;
  }
  bool goes_on() { return add(0.0); }
  bool add(double flops) {
    const std::lock_guard lock(mutex_);
    finished_ += flops;
    most_ = std::max(most_, finished_ / unit_);
    if (keep_going_ && go_ && !keep_going_(static_cast<std::uint64_t>(most_))) go_ = false;
    return go_;
  }

 private:
  std::mutex mutex_;
  double unit_, finished_ = 0.0, most_ = 0.0;
  bool go_ = true;
  const KeepGoing& keep_going_;
};

// A replica: every level moves as the pilot settled, unless it is told to stop.
class ReplicaParticles : public TokenParticles {
 public:
  ReplicaParticles(const TokenProblem& p, const Plan& plan, std::size_t n, ThreadPool& pool, Meter& meter)
      : TokenParticles(p, n, pool), plan_(plan), meter_(meter) {}
  void scores(std::span<double> out) {
    stopped_ = !TokenParticles::scores(out, [&] { return meter_.goes_on(); });
  }
  MoveStats move(double level, std::size_t k, std::uint64_t seed) {
    MoveStats stats;
    MoveTally tally;
    begin_moves();
    const std::size_t n = plan_.settings[k].n_moves, round = moves_between_looks();
    for (std::size_t first = 0; first < n && !stopped_; first += round) {
      run_moves(level, k, first, std::min(round, n - first), plan_.settings[k], seed, stats, tally);
      stopped_ = !meter_.goes_on();
    }
    return stats;
  }
  bool stopped() const { return stopped_; }

 private:
  // About a second's worth. A device has its own ways to stop.
  std::size_t moves_between_looks() const {
    constexpr std::size_t kFewest = 8, kProposals = 8192;
    if (problem().service != nullptr) return std::numeric_limits<std::size_t>::max() / 2;
    return std::max(kFewest, kProposals / size());
  }

  const Plan& plan_;
  Meter& meter_;
  bool stopped_ = false;
};

// Replicas run side by side, each on its share of the threads: nothing waits between moves. On a service
// every replica has a thread that mostly waits.
std::size_t replicas_at_once(const TokenProblem& problem, const TokensplitConfig& config,
                             const ThreadPool& pool) {
  return std::min(problem.service != nullptr ? kMostWaiting : pool.size(), config.replicas);
}

Replicas run_replicas(const TokenProblem& problem, const TokensplitConfig& config, const Plan& plan,
                      const Sizes& sizes, std::uint64_t first_part, ThreadPool& pool, Meter& meter) {
  Replicas all{.runs = std::vector<SplittingRun>(config.replicas)};
  std::vector<TokenWork> work(config.replicas);
  std::vector<TriggerPool> triggers(config.replicas);
  ThreadPool outer(replicas_at_once(problem, config, pool));
  const std::size_t most = sizes.most();
  const std::size_t inner_threads = std::max<std::size_t>(1, pool.size() / outer.size());
  outer.for_each_block(config.replicas, [&](std::size_t r, std::size_t) {
    all.runs[r] = {.end = SplittingEnd::kStopped, .log_p = -std::numeric_limits<double>::infinity()};
    if (!meter.goes_on()) return;
    ThreadPool inner(inner_threads);
    ReplicaParticles particles(problem, plan, most, inner, meter);
    double told = 0.0;
    const auto observe = [&](const Level& level, const ReplicaParticles& p, std::span<const double> scores) {
      if (level.level >= 0.0) triggers[r].add(p, scores);
      const double now = p.work().flops;
      return meter.add(now - std::exchange(told, now));
    };
    const SplittingConfig splitting{.n_particles = sizes.at_level.back(),
                                    .initial_particles = sizes.first_draw,
                                    .sizes = sizes.at_level,
                                    .levels = plan.levels};
    all.runs[r] = run_splitting(particles, splitting, derived_seed(config.seed, first_part + r), observe);
    work[r] = particles.work();
  });
  for (std::size_t r = 0; r < config.replicas; ++r) {
    all.work += work[r];
    all.triggers.append(triggers[r]);
    all.first += all.runs[r].first;
  }
  return all;
}

std::string default_or(std::size_t n) { return n == 0 ? "default" : fmt::format("{}", n); }

TokensplitConfig with_budget(const TokensplitConfig& wanted, const ModelConfig& model,
                             const Distribution& dist, Device device) {
  wanted.validate();
  TokensplitConfig config = wanted;
  if (config.budget == 0.0) config.budget = tokensplit_budget(model, dist, device);
  return config;
}

// What populations take of this machine's memory.
struct Room {
  Room(const TokenProblem& problem_in, const TokensplitConfig& config_in, std::size_t targets_at_once,
       const ThreadPool& pool)
      : problem(problem_in),
        config(config_in),
        side_by_side(static_cast<double>(targets_at_once * replicas_at_once(problem_in, config_in, pool))) {}
  double bytes(const Sizes& sizes) const {
    return side_by_side * (problem.service != nullptr ? sizes.token_bytes(problem.dist)
                                                      : sizes.bytes(problem.model.config(), problem.dist));
  }
  void require(const Sizes& sizes) const {
    check_memory(fmt::format("tokensplit ({} particles, first draw {})", default_or(config.particles),
                             default_or(config.first_draw)),
                 bytes(sizes), "take fewer particles, replicas or threads, or a smaller budget");
  }
  const TokenProblem& problem;
  const TokensplitConfig& config;
  double side_by_side;
};

// Is there room for a second run with twice the particles, should the replicas disagree? Decided before the
// first one: only then do the lower bounds know of it (share_of_waves).
bool may_repeat(const TokensplitConfig& config, const PilotResult& pilot, const Sizes& sizes,
                const Room& room, double unit) {
  const Sizes doubled = sizes.doubled();
  const double planned = (sizes.flops + doubled.flops) * static_cast<double>(config.replicas);
  // Plain sampling has no modes to lose.
  return pilot.plan.levels.size() > 1 && pilot.work.flops + planned <= config.budget * unit &&
         doubled.valid() && room.bytes(doubled) <= memory_limit();
}

void repeat_if_they_disagree(const TokenProblem& problem, const TokensplitConfig& config, const Plan& plan,
                             const Sizes& sizes, ThreadPool& pool, Meter& meter, TokenWork& work,
                             Replicas& all, Estimate& e) {
  if (std::any_of(all.runs.begin(), all.runs.end(), was_stopped) || !combine_replicas(all.runs).disagree)
    return;
  // Looking at the first replicas before drawing more costs the strict guarantee.
  e.guarantee = Guarantee::kConsistent;
  e.warnings.emplace_back(
      "the replicas disagreed: a mode may be missing, so they were run again with twice the particles");
  Replicas again = run_replicas(problem, config, plan, sizes.doubled(), kSecondWaveParts, pool, meter);
  work += again.work;
  if (std::none_of(again.runs.begin(), again.runs.end(), was_stopped))
    all = std::move(again);
  else
    e.warnings.emplace_back("stopped during the second run: the estimate is the first one's");
}

// Everything after a pilot that was not stopped.
void estimate_by_replicas(const TokenProblem& problem, const TokensplitConfig& config, PilotResult& pilot,
                          const Room& room, ThreadPool& pool, Meter& meter, TokenWork& work, Estimate& e) {
  const double unit = forward_flops(problem.model.config(), problem.dist.length());
  const Sizes sizes = sizes_of(config, pilot, unit);
  room.require(sizes);
  Replicas all = run_replicas(problem, config, pilot.plan, sizes, kReplicaParts, pool, meter);
  work += all.work;
  e.warnings = pilot.plan.warnings;
  const bool reached = pilot.run.end == SplittingEnd::kReached;
  if (!reached)
    e.warnings.push_back(
        fmt::format("the pilot ended ({}) below the event: from there on the replicas found it, or not, by "
                    "sampling alone",
                    name_of(pilot.run.end)));
  const bool two_waves = may_repeat(config, pilot, sizes, room, unit);
  if (two_waves) repeat_if_they_disagree(problem, config, pilot.plan, sizes, pool, meter, work, all, e);
  FirstDraw first = pilot.run.first;
  first += all.first;
  fill_from_replicas(e, all, share_of_waves(two_waves), first, !pilot.plan.warnings.empty());
  if (all.runs.empty() && reached)
    e.warnings.push_back(
        fmt::format("the pilot reached the event, with p about {:.2g}; nothing is known of "
                    "its error",
                    std::exp(pilot.run.log_p)));
  if (!reached && e.status == Status::kExtinct) e.status = Status::kNotReachedUpperBound;
  e.triggers = all.triggers.best(config.max_triggers);
  e.positions = all.triggers.deciding(problem.dist, kDecidingPositions);
}

}  // namespace

double target_bytes(const Transformer& model, const Distribution& dist, const TokensplitConfig& wanted) {
  const TokensplitConfig config = with_budget(wanted, model.config(), dist, Device::kCuda);
  return static_cast<double>(std::min(kMostWaiting, config.replicas)) * asked_sizes(config).token_bytes(dist);
}

Estimate estimate_target(const TokenProblem& problem, const TokensplitConfig& wanted,
                         std::size_t targets_at_once, ThreadPool& pool, const KeepGoing& keep_going) {
  const TokensplitConfig config = with_budget(wanted, problem.model.config(), problem.dist,
                                              problem.service != nullptr ? Device::kCuda : Device::kCpu);
  const Room room(problem, config, targets_at_once, pool);
  room.require(asked_sizes(config));
  const double unit = forward_flops(problem.model.config(), problem.dist.length());
  Meter meter(unit, keep_going);
  check_varies(problem.dist);
  Estimate e{.method = "tokensplit",
             .target = problem.target.ids(),
             .guarantee = Guarantee::kUnbiased,
             .seed = config.seed};
  PilotResult pilot = run_pilot(problem, pilot_config(config, unit), derived_seed(config.seed, kPilotPart),
                                pool, [&](const TokenWork& work) { return meter.tell(work.flops); });
  meter.add(pilot.work.flops);
  TokenWork work = pilot.work;
  if (pilot.run.end != SplittingEnd::kStopped)
    estimate_by_replicas(problem, config, pilot, room, pool, meter, work, e);
  else
    fill_stopped(e, pilot);
  fill_cost(e, work, unit);
  if (constexpr double kMuch = 1.1;
      config.particles == 0 && config.first_draw == 0 && e.cost.forward_equivalents > kMuch * config.budget)
    e.warnings.push_back(
        fmt::format("it took {:.2g} passes' work, more than the budget of {:.2g}: with less "
                    "there are too few particles for an interval",
                    e.cost.forward_equivalents, config.budget));
  e.cost.seconds = work.device_seconds;
  return e;
}

Estimate tokensplit(const Transformer& model, const Distribution& dist, const Target& target,
                    const TokensplitConfig& wanted, ThreadPool& pool, const KeepGoing& keep_going) {
  const TokensplitConfig config = with_budget(wanted, model.config(), dist, Device::kCpu);
  Room({model, dist, target}, config, 1, pool).require(asked_sizes(config));
  const auto start = std::chrono::steady_clock::now();
  const auto table = first_layer_table(model, dist, pool);
  const Screen screen = screen_for(model, dist, derived_seed(config.seed, kScreenPart), pool, table.get());
  Estimate e = estimate_target({model, dist, target, table.get(), &screen}, config, 1, pool, keep_going);
  e.cost.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return e;
}

}  // namespace deeptail
