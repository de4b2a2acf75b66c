// Splitting on states that a user keeps: a pilot for the levels, replicas for the estimate.
#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "core/stopwatch.h"
#include "deeptail/split.h"
#include "estimators/tokensplit/summary.h"

namespace deeptail {

namespace {

constexpr double kPilotsShare = 0.3;  // of the budget, at most
constexpr std::size_t kFewestStates = 16, kMostStates = 1 << 16;

// How many particles hold each state. Shared by all populations.
class StateKeeper {
 public:
  StateKeeper(const StateFunctions& functions, double budget, const Watch& watch)
      : functions_(functions), total_(static_cast<std::uint64_t>(budget)), watch_(watch) {}

  bool stopped() const { return stopped_; }
  double scored() const { return static_cast<double>(scored_); }

  bool sample(std::uint64_t seed, std::span<std::int64_t> states) {
    if (!go(functions_.sample(seed, states))) return false;
    return hold(states), true;
  }
  bool mutate(std::span<const std::int64_t> states, std::uint64_t seed, std::span<std::int64_t> proposals) {
    if (!go(functions_.mutate(states, seed, proposals))) return false;
    return hold(proposals), true;
  }
  bool score(std::span<const std::int64_t> states, std::span<double> out) {
    if (!go(functions_.score(states, out))) return false;
    scored_ += states.size();
    return go(goes_on(watch_, progress_of(scored_, total_)));
  }
  void hold(std::span<const std::int64_t> states) {
    for (const std::int64_t state : states) ++held_[state];
  }
  void release(std::span<const std::int64_t> states) {
    std::vector<std::int64_t> free;
    for (const std::int64_t state : states)
      if (const auto at = held_.find(state); at != held_.end() && --at->second == 0) {
        held_.erase(at);
        free.push_back(state);
      }
    if (functions_.drop && !free.empty()) go(functions_.drop(free));
  }

 private:
  bool go(bool on) {
    stopped_ = stopped_ || !on;
    return !stopped_;
  }

  const StateFunctions& functions_;
  std::uint64_t total_, scored_ = 0;
  const Watch& watch_;
  std::unordered_map<std::int64_t, std::size_t> held_;
  bool stopped_ = false;
};

class StateParticles {
 public:
  StateParticles(StateKeeper& keeper, std::size_t moves) : keeper_(keeper), moves_(moves) {}
  ~StateParticles() { keeper_.release(states_); }

  void sample(std::size_t n, std::uint64_t seed) {
    states_.resize(n);
    scores_.assign(n, -std::numeric_limits<double>::infinity());
    if (keeper_.sample(derived_seed(seed, 0), states_))
      keeper_.score(states_, scores_);
    else
      states_.assign(n, kNoState);
  }
  std::size_t size() const { return states_.size(); }
  void scores(std::span<double> out) const { std::copy(scores_.begin(), scores_.end(), out.begin()); }
  bool stopped() const { return keeper_.stopped(); }
  std::span<const std::int64_t> states() const { return states_; }

  void resample(std::span<const std::uint32_t> parents) {
    std::vector<std::int64_t> states;
    std::vector<double> scores;
    for (const std::uint32_t parent : parents) {
      states.push_back(states_[parent]);
      scores.push_back(scores_[parent]);
    }
    keeper_.hold(states);
    keeper_.release(states_);
    states_ = std::move(states);
    scores_ = std::move(scores);
  }

  MoveStats move(double level, std::size_t number, std::uint64_t seed) {
    MoveStats stats;
    std::vector<std::int64_t> proposals(size());
    std::vector<double> scores(size());
    for (; stats.moves < moves_; ++stats.moves) {
      const std::uint64_t step = derived_seed(seed, 1 + (number << 22) + stats.moves);
      if (!keeper_.mutate(states_, step, proposals)) break;
      const bool known = keeper_.score(proposals, scores);
      for (std::size_t i = 0; known && i < size(); ++i) {
        ++stats.proposed;
        if (!(scores[i] >= level)) continue;
        ++stats.accepted;
        std::swap(states_[i], proposals[i]);
        scores_[i] = scores[i];
      }
      keeper_.release(proposals);
      if (!known) break;
    }
    return stats;
  }

 private:
  static constexpr std::int64_t kNoState = std::numeric_limits<std::int64_t>::min();
  StateKeeper& keeper_;
  std::size_t moves_;
  std::vector<std::int64_t> states_;
  std::vector<double> scores_;  // [states_]
};
static_assert(Particles<StateParticles>);

std::size_t pilot_particles(const SplitStatesConfig& c) {
  return std::clamp(static_cast<std::size_t>(c.budget / 2000.0), std::size_t{64}, std::size_t{256});
}

PilotResult run_states_pilot(StateKeeper& keeper, const SplitStatesConfig& c) {
  StateParticles particles(keeper, c.moves);
  PilotResult pilot;
  const auto within_budget = [&](const Level& level, const StateParticles&, std::span<const double>) {
    pilot.plan.levels.push_back(level.level);
    return keeper.scored() < kPilotsShare * c.budget;
  };
  pilot.run = run_splitting(particles,
                            {.n_particles = pilot_particles(c),
                             .initial_particles = 4 * pilot_particles(c),
                             .survive_fraction = c.survive_fraction},
                            derived_seed(c.seed, 0), within_budget);
  // Whether it got there or not, from its last level on the replicas go for the event.
  if (pilot.plan.levels.empty() || pilot.plan.levels.back() < 0.0) pilot.plan.levels.push_back(0.0);
  return pilot;
}

std::size_t particles_for_budget(const SplitStatesConfig& c, const PilotResult& pilot, double spent) {
  if (c.particles > 0) return c.particles;
  const double per_particle =
      1.0 + static_cast<double>(pilot.plan.levels.size() - 1) * static_cast<double>(c.moves);
  const double n = (c.budget - spent) / (static_cast<double>(c.replicas) * per_particle);
  return std::clamp(static_cast<std::size_t>(std::max(0.0, n)), kFewestStates, kMostStates);
}

SplittingRun run_states_replica(StateKeeper& keeper, const SplitStatesConfig& c,
                                const std::vector<double>& levels, std::size_t n, std::size_t r,
                                std::vector<std::int64_t>& kept) {
  StateParticles particles(keeper, c.moves);
  const auto keep = [&](const Level& level, const StateParticles& p, std::span<const double> scores) {
    for (std::size_t i = 0; level.level >= 0.0 && i < scores.size() && kept.size() < c.kept; ++i) {
      const std::int64_t state = p.states()[i];
      if (scores[i] < 0.0 || std::find(kept.begin(), kept.end(), state) != kept.end()) continue;
      kept.push_back(state);
      keeper.hold(std::span(&kept.back(), 1));
    }
    return !keeper.stopped();
  };
  return run_splitting(particles, {.n_particles = n, .levels = levels}, derived_seed(c.seed, 1 + r), keep);
}

}  // namespace

void SplitStatesConfig::validate() const {
  if (!(budget >= 1000.0 && std::isfinite(budget)))
    throw InputError("budget {}: expected at least 1000 scores", budget);
  if (replicas < 2 || replicas > kMostReplicas)
    throw InputError("{} replicas: expected 2 to {}", replicas, kMostReplicas);
  if (!(survive_fraction > 0.0 && survive_fraction < 1.0))
    throw InputError("survive fraction {}: expected a number between 0 and 1", survive_fraction);
  if (moves < 1 || moves > kMostMoves)
    throw InputError("{} moves: expected 1 to {} per level", moves, kMostMoves);
  if (particles == 1 || particles > kMostParticles)
    throw InputError("{} particles: expected 2 to {}", particles, kMostParticles);
}

StatesEstimate split_states(const StateFunctions& functions, const SplitStatesConfig& config,
                            const Watch& watch) {
  config.validate();
  const Stopwatch stopwatch;
  StateKeeper keeper(functions, config.budget, watch);
  StatesEstimate out;
  Estimate& e = out.estimate;
  e.method = "split_state";
  e.event = "score >= 0";
  e.seed = config.seed;
  const PilotResult pilot = run_states_pilot(keeper, config);
  if (keeper.stopped()) {
    fill_stopped(e, pilot);
  } else {
    const std::size_t n = particles_for_budget(config, pilot, keeper.scored());
    Replicas replicas;
    for (std::size_t r = 0; r < config.replicas; ++r) {
      SplittingRun run{.end = SplittingEnd::kStopped, .log_p = -std::numeric_limits<double>::infinity()};
      if (!keeper.stopped()) run = run_states_replica(keeper, config, pilot.plan.levels, n, r, out.states);
      replicas.first += run.first;
      replicas.runs.push_back(std::move(run));
      replicas.triggers.emplace_back();
    }
    std::vector<StratumRuns> strata{{1.0, pilot, replicas}};
    fill_from_strata(e, strata, nullptr);
  }
  fill_cost(e, {.forwards = static_cast<std::uint64_t>(keeper.scored()), .flops = keeper.scored()}, 1.0);
  e.cost.seconds = stopwatch.seconds();
  return out;
}

}  // namespace deeptail
