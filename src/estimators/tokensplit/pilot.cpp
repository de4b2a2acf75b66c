#include "estimators/tokensplit/pilot.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "estimators/tokensplit/keep_hits.h"
#include "estimators/tokensplit/place.h"

namespace deeptail {

namespace {

constexpr std::size_t kRound = 16;
constexpr std::size_t kAnswerRound = 4;  // a text that goes on anew forgets sooner, and costs more
constexpr double kBlockShare = 0.25, kSuffixShare = 0.1, kCrossingShare = 0.4;
constexpr std::size_t kSmallestBlock = 2;
// A part gets at least this share of the mean weight.
constexpr double kLeastWeight = 0.25;
// The share of the pilot's flops that one level may take.
constexpr double kLevelShare = 0.1;
// It gives up after this many times its flops.
constexpr double kPatience = 3.0;

// Flops of a change at each part: [parts].
std::vector<double> change_costs(const TokenProblem& problem) {
  std::vector<double> costs;
  for (std::size_t part = 0; part < problem.n_parts(); ++part)
    costs.push_back(problem.event.change_flops(problem.model.config(), problem.law, part));
  return costs;
}

// Weights that make the slowest parts move, per flop: minimising sum_i 1 / (w_i a_i) at a fixed sum_i w_i c_i
// gives w_i proportional to 1 / sqrt(a_i c_i), a the acceptance and c the cost of a change at i.
std::vector<double> part_weights(const MoveTally& tally, std::span<const std::size_t> free,
                                 std::span<const double> costs) {
  std::vector<double> weights(costs.size(), 0.0);
  double sum = 0.0;
  for (const std::size_t i : free)
    sum += weights[i] = 1.0 / std::sqrt(tally.single[i].acceptance() * costs[i]);
  const double least = kLeastWeight * sum / static_cast<double>(free.size());
  for (const std::size_t i : free) weights[i] = std::max(weights[i], least);
  return weights;
}

std::size_t next_block(std::size_t block, double acceptance, std::size_t n_free) {
  if (acceptance > 0.35) block += (block + 1) / 2;
  if (acceptance < 0.15 && block > kSmallestBlock) block -= (block + 2) / 3;
  return std::clamp(block, std::min(kSmallestBlock, n_free), n_free);
}

// Moves until the particles have forgotten where they began, and adapts meanwhile.
class PilotPolicy final : public MovePolicy {
 public:
  PilotPolicy(const TokenProblem& problem, const PilotConfig& config, Meter& meter)
      : config_(config),
        meter_(meter),
        keeps_held_(problem.event.keeps_held()),
        free_(problem.free_parts()),
        costs_(change_costs(problem)) {
    std::vector<double> uniform(problem.n_parts(), 0.0);
    for (const std::size_t i : free_) uniform[i] = 1.0;
    settings_ = {.cumulative = cumulative_of(uniform),
                 .block = std::min<std::size_t>(4, free_.size()),
                 .block_share = kBlockShare,
                 .suffix_share = kSuffixShare};
    if (problem.event.answer_length() > 0) {
      // A text that goes on anew from some token forgets more than one that keeps its later numbers.
      constexpr double kAnswerSuffixShare = 0.4;
      settings_.suffix_share = kAnswerSuffixShare;
      settings_.longest_suffix = free_.size();
      round_ = kAnswerRound;
    }
    if (problem.event.has_crossings()) {
      settings_.crossing_share = kCrossingShare;
      settings_.suffix_share = kSuffixShare;
    }
  }

  bool goes_on(const Work& work) override {
    interrupted_ = !meter_.tell(work.flops);
    return !interrupted_;
  }
  // By the user, while scoring. Moves that were cut short are scored once more: they may have reached it.
  bool stopped() const override { return interrupted_; }

  const MoveSettings& begin(const LevelView& at, ScoreHints hints) override {
    begin_.assign(at.inputs.tokens.begin(), at.inputs.tokens.end());
    settings_.hints = std::move(hints);
    flops_before_ = at.work.flops;
    all_ = {.single = std::vector<Tally>(costs_.size())};
    enough_ = false;
    return settings_;
  }
  std::size_t how_far(const LevelView& at, std::size_t made) override {
    if (made == 0) hold_flops_ = at.work.flops - flops_before_;
    return enough_ ? 0 : std::min({round_, config_.fewest_moves, config_.max_moves - made});
  }
  void learn(const LevelView& at, const MoveTally& round, MoveStats& stats) override {
    adapt(round);
    stats.parent_correlation = parent_correlation(begin_, at.inputs.tokens, at.inputs.length);
    budget_spent_ = at.work.flops > kPatience * config_.flops;
    cut_ = !meter_.tell(at.work.flops) || budget_spent_;
    const bool forgotten =
        stats.parent_correlation <= config_.forgotten && stats.moves >= config_.fewest_moves;
    const bool spent = at.work.flops - flops_before_ > kLevelShare * config_.flops;
    enough_ = forgotten || spent || cut_ || stats.moves >= config_.max_moves;
  }
  void end(const LevelView& at, const MoveStats& stats) override {
    settings_.n_moves = stats.moves;
    plan_.levels.push_back(at.level);
    plan_.settings.push_back(settings_);
    // What is kept was first held of the first draws, and counts with them.
    const double kept = keeps_held_ ? hold_flops_ : 0.0;
    plan_.flops_per_particle.push_back((at.work.flops - flops_before_ - kept) /
                                       static_cast<double>(at.inputs.size()));
  }

  bool cut() const { return cut_; }
  bool budget_spent() const { return budget_spent_; }
  Plan& plan() { return plan_; }

 private:
  void adapt(const MoveTally& round) {
    for (const std::size_t i : free_) {
      all_.single[i].proposed += round.single[i].proposed;
      all_.single[i].accepted += round.single[i].accepted;
    }
    settings_.cumulative = cumulative_of(part_weights(all_, free_, costs_));
    settings_.block = next_block(settings_.block, round.block.acceptance(), free_.size());
  }

  const PilotConfig& config_;
  Meter& meter_;
  bool keeps_held_;
  std::vector<std::size_t> free_;
  std::vector<double> costs_;  // [parts]
  MoveSettings settings_;
  std::size_t round_ = kRound;
  Plan plan_;
  // Of the present level.
  std::vector<TokenId> begin_;  // where its particles began
  MoveTally all_;
  double flops_before_ = 0.0, hold_flops_ = 0.0;
  bool enough_ = false;
  bool interrupted_ = false, cut_ = false, budget_spent_ = false;
};

}  // namespace

double parent_correlation(std::span<const TokenId> begin, std::span<const TokenId> now, std::size_t length) {
  const std::size_t n = begin.size() / length;
  double sum = 0.0;
  std::size_t used = 0;
  std::vector<std::uint32_t> counts(static_cast<std::size_t>(*std::max_element(now.begin(), now.end())) + 1);
  const auto count_of = [&](std::size_t i, std::size_t position) -> std::uint32_t& {
    return counts[static_cast<std::size_t>(now[i * length + position])];
  };
  for (std::size_t position = 0; position < length; ++position) {
    double same = 0.0, agree = 0.0;  // whole numbers until they are divided, so that no order matters
    for (std::size_t i = 0; i < n; ++i) {
      same += begin[i * length + position] == now[i * length + position];
      agree += 2.0 * count_of(i, position)++;  // pairs with those before it
    }
    for (std::size_t i = 0; i < n; ++i) count_of(i, position) = 0;
    same /= static_cast<double>(n);
    agree /= static_cast<double>(n * (n - 1));
    if (agree >= 1.0) continue;
    sum += std::max(0.0, (same - agree) / (1.0 - agree));
    ++used;
  }
  return used == 0 ? 0.0 : sum / static_cast<double>(used);
}

namespace {

// Of events that pay, which have no threshold: have those below the level paid nearly all? So much of the answer may be
// left to be estimated without further levels.
class PaidSoFar {
 public:
  template <class Population>
  bool nearly_all(const Level& level, const Population& population, std::span<const double> scores) {
    constexpr double kLeft = 0.02;
    const double below = log_reach_ + mean_of(population, scores, level.level, false);
    const double above = log_reach_ + mean_of(population, scores, level.level, true);
    log_paid_ = log_add(log_paid_, below);
    log_reach_ += std::log(level.survive_fraction);
    return !std::isinf(log_paid_) && above < std::log(kLeft) + log_add(log_paid_, above);
  }

 private:
  template <class Population>
  static double mean_of(const Population& population, std::span<const double> scores, double level,
                        bool above) {
    std::vector<std::uint32_t> who;
    for (std::size_t i = 0; i < scores.size(); ++i)
      if ((scores[i] >= level) == above) who.push_back(static_cast<std::uint32_t>(i));
    std::vector<double> paid(who.size());
    population.log_payoffs(who, paid);
    return log_mean_payoff(paid, scores.size());
  }

  double log_paid_ = -std::numeric_limits<double>::infinity(), log_reach_ = 0.0;
};

}  // namespace

template <class Place>
PilotResult run_pilot(const Place& place, const PilotConfig& config, std::uint64_t seed, ThreadPool& pool,
                      Meter& meter) {
  PilotPolicy policy(place.problem, config, meter);
  auto particles = place.population(config.n_particles, policy, pool);
  const bool pays = place.problem.event.pays();
  PaidSoFar paid;
  std::optional<double> last;
  PilotResult result;
  double log_reach = 0.0;
  const auto observe = [&](const Level& level, const auto& population, std::span<const double> scores) {
    log_reach += std::log(level.survive_fraction);
    if (!pays && level.level >= 0.0) keep_hits(population, scores, level.level, log_reach, result.hits);
    if (pays && paid.nearly_all(level, population, scores)) last = level.level;
    return !policy.cut() && !last;
  };
  result.run = run_splitting(particles,
                             {.n_particles = config.n_particles,
                              .initial_particles = config.initial_particles,
                              .survive_fraction = config.survive_fraction,
                              .threshold = pays ? std::numeric_limits<double>::infinity() : 0.0},
                             seed, observe);
  result.plan = std::move(policy.plan());
  if (pays && !last && !result.plan.levels.empty()) {
    // It ended before that: what comes after its last level is estimated there.
    last = result.plan.levels.back();
    result.plan.levels.pop_back();
    result.plan.settings.pop_back();
    result.plan.flops_per_particle.pop_back();
  }
  if (last || (!pays && result.run.end != SplittingEnd::kStopped)) {
    // The event. A pilot that did not get there leaves the levels that it found, and the replicas a last
    // step.
    result.plan.levels.push_back(last.value_or(0.0));
    result.plan.settings.push_back({.n_moves = 0});
    result.plan.flops_per_particle.push_back(0.0);
  }
  const TokenProblem& problem = place.problem;
  result.plan.held_score_flops = problem.event.held_score_flops(problem.model.config(), problem.law);
  if (!problem.event.keeps_held())
    result.plan.hold_flops = problem.score_flops();
  else if (!result.run.levels.empty())
    result.plan.first_held = result.run.levels.front().survive_fraction;
  result.work = particles.work();
  result.budget_spent = policy.budget_spent();
  return result;
}
template PilotResult run_pilot(const CpuPlace&, const PilotConfig&, std::uint64_t, ThreadPool&, Meter&);
template PilotResult run_pilot(const ServedPlace&, const PilotConfig&, std::uint64_t, ThreadPool&, Meter&);

}  // namespace deeptail
