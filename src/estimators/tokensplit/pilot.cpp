#include "estimators/tokensplit/pilot.h"

#include <algorithm>

namespace deeptail {

namespace {

constexpr std::size_t kRound = 16, kFewestMoves = 32;
constexpr double kBlockShare = 0.25, kSuffixShare = 0.1;
constexpr std::size_t kSmallestBlock = 2;
// A position gets at least this share of the mean weight.
constexpr double kLeastWeight = 0.25;
// The share of the pilot's flops that one level may take.
constexpr double kLevelShare = 0.1;
// It gives up after this many times its flops.
constexpr double kPatience = 3.0;

// Weights that make the slowest positions move, per flop: minimising sum_i 1 / (w_i a_i) at a fixed sum_i w_i
// c_i gives w_i proportional to 1 / sqrt(a_i c_i), a the acceptance and c the cost of a change at i.
std::vector<double> position_weights(const MoveTally& tally, std::span<const std::size_t> free,
                                     const ModelConfig& config) {
  const std::size_t length = tally.single.size();
  std::vector<double> weights(length, 0.0);
  double sum = 0.0;
  for (const std::size_t i : free) {
    const double logits = 2.0 * static_cast<double>(config.d_model * config.d_vocab);
    const double cost = rescoring_flops(config, length, i) + logits;
    sum += weights[i] = 1.0 / std::sqrt(tally.single[i].acceptance() * cost);
  }
  const double least = kLeastWeight * sum / static_cast<double>(free.size());
  for (const std::size_t i : free) weights[i] = std::max(weights[i], least);
  return weights;
}

std::size_t next_block(std::size_t block, double acceptance, std::size_t n_free) {
  if (acceptance > 0.35) block += (block + 1) / 2;
  if (acceptance < 0.15 && block > kSmallestBlock) block -= (block + 2) / 3;
  return std::clamp(block, std::min(kSmallestBlock, n_free), n_free);
}

struct PilotParticles : TokenParticles {
  PilotParticles(const TokenProblem& p, const PilotConfig& c, ThreadPool& pool,
                 const std::function<bool(const TokenWork&)>& go)
      : TokenParticles(p, c.n_particles, pool), config(c), keep_going(go) {
    std::vector<double> uniform(length(), 0.0);
    for (const std::size_t i : free()) uniform[i] = 1.0;
    settings = {.cumulative = cumulative_of(uniform),
                .block = std::min<std::size_t>(4, free().size()),
                .block_share = kBlockShare,
                .suffix_share = kSuffixShare};
  }

  void scores(std::span<double> out) {
    interrupted = !TokenParticles::scores(out, [&] { return keep_going(work()); });
  }
  // By the user, while scoring. Moves that were cut short are scored once more: they may have reached it.
  bool stopped() const { return interrupted; }

  MoveStats move(double level, std::size_t k, std::uint64_t seed) {
    const std::vector<TokenId> begin(tokens().begin(), tokens().end());
    settings.winners = usual_winners(margins());
    const double flops_before = work().flops;
    MoveStats stats;
    MoveTally all;
    begin_moves();
    for (;;) {
      MoveTally round;
      run_moves(level, k, stats.moves, std::min(kRound, config.max_moves - stats.moves), settings, seed,
                stats, round);
      adapt(round, all);
      stats.parent_correlation = parent_correlation(begin, tokens(), length(), free());
      budget_spent = work().flops > kPatience * config.flops;
      cut = !keep_going(work()) || budget_spent;
      const bool enough = stats.parent_correlation <= config.forgotten && stats.moves >= kFewestMoves;
      const bool spent = work().flops - flops_before > kLevelShare * config.flops;
      if (enough || spent || cut || stats.moves >= config.max_moves) break;
    }
    settings.n_moves = stats.moves;
    plan.levels.push_back(level);
    plan.settings.push_back(settings);
    plan.flops_per_particle.push_back((work().flops - flops_before) / static_cast<double>(size()));
    return stats;
  }

  void adapt(const MoveTally& round, MoveTally& all) {
    all.single.resize(length());
    for (const std::size_t i : free()) {
      all.single[i].proposed += round.single[i].proposed;
      all.single[i].accepted += round.single[i].accepted;
    }
    settings.cumulative = cumulative_of(position_weights(all, free(), problem().model.config()));
    settings.block = next_block(settings.block, round.block.acceptance(), free().size());
  }

  const PilotConfig& config;
  const std::function<bool(const TokenWork&)>& keep_going;
  MoveSettings settings;
  Plan plan;
  bool interrupted = false, cut = false, budget_spent = false;
};

}  // namespace

double parent_correlation(std::span<const TokenId> begin, std::span<const TokenId> now, std::size_t length,
                          std::span<const std::size_t> free) {
  const std::size_t n = begin.size() / length;
  double sum = 0.0;
  std::size_t used = 0;
  std::vector<std::uint32_t> counts(static_cast<std::size_t>(*std::max_element(now.begin(), now.end())) + 1);
  const auto count_of = [&](std::size_t i, std::size_t position) -> std::uint32_t& {
    return counts[static_cast<std::size_t>(now[i * length + position])];
  };
  for (const std::size_t position : free) {
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

PilotResult run_pilot(const TokenProblem& problem, const PilotConfig& config, std::uint64_t seed,
                      ThreadPool& pool, const std::function<bool(const TokenWork&)>& keep_going) {
  PilotParticles particles(problem, config, pool, keep_going);
  const auto observe = [](const Level&, const PilotParticles& p, std::span<const double>) { return !p.cut; };
  PilotResult result;
  result.run = run_splitting(particles,
                             {.n_particles = config.n_particles,
                              .initial_particles = config.initial_particles,
                              .survive_fraction = config.survive_fraction},
                             seed, observe);
  result.plan = std::move(particles.plan);
  if (result.run.end != SplittingEnd::kStopped) {
    // The event. A pilot that did not get there leaves the levels that it found, and the replicas a last
    // step.
    result.plan.levels.push_back(0.0);
    result.plan.settings.push_back({.n_moves = 0});
    result.plan.flops_per_particle.push_back(0.0);
  }
  result.work = particles.work();
  result.budget_spent = particles.budget_spent;
  return result;
}

}  // namespace deeptail
