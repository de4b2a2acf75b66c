#include "estimators/tokensplit/plan.h"

#include <algorithm>
#include <cmath>

#include "estimators/tokensplit/look.h"

namespace deeptail {

namespace {

constexpr double kPilotShare = 0.2, kFirstDrawShare = 0.15;  // of the budget, at most
// Of any level, for memory's sake, unless the user asks for more.
constexpr std::size_t kFewestParticles = 32, kUsualMostParticles = 16384;
constexpr std::size_t kLeastParticles = 16;  // where the budget is too small even for those
constexpr std::size_t kFewestFirstDraw = 256, kUsualMostFirstDraw = 16384;
constexpr double kMostPlainDraw = 1 << 20;
constexpr std::size_t kFewestCutMoves = 4, kUsualMostMoves = 1024;
constexpr double kMostTaper = 1024.0;

std::size_t most_particles(const TokensplitConfig& c) { return std::max(kUsualMostParticles, c.particles); }

std::size_t first_draw_of(const TokensplitConfig& c) {
  if (c.first_draw > 0) return c.first_draw;
  const double share = kFirstDrawShare * c.budget / static_cast<double>(c.replicas + 1);
  return std::clamp(static_cast<std::size_t>(share), kFewestFirstDraw, kUsualMostFirstDraw);
}

// Relative sizes of the population, the last level's being 1. Early levels hold more: moves are cheap there,
// and a mode that is rare early can only come from a particle that is in it.
std::vector<double> shape_of(std::size_t n_levels, double taper) {
  std::vector<double> shape(n_levels, 1.0);
  for (std::size_t k = 0; k + 2 < n_levels; ++k)
    shape[k] = std::pow(taper, 1.0 - static_cast<double>(k) / static_cast<double>(n_levels - 2));
  return shape;
}

// Forward-pass equivalents of one replica's levels, per particle of the last level with those that it stands
// for.
struct ParticleCost {
  double all = 0.0;
  double passes = 0.0;  // of these: to hold particles before the moves of a level, and to score them after it
};

ParticleCost cost_of(const Plan& plan, const std::vector<double>& shape, double unit) {
  ParticleCost cost;
  for (std::size_t k = 0; k + 1 < shape.size(); ++k) {
    const double score = plan.held_score_flops / unit;
    cost.all += shape[k] * (plan.flops_per_particle[k] / unit + score);
    cost.passes += shape[k] * (plan.hold_flops / unit + score);
  }
  return cost;
}

void cut_moves(Plan& plan, double share) {
  for (std::size_t k = 0; k + 1 < plan.settings.size(); ++k) {
    std::size_t& n_moves = plan.settings[k].n_moves;
    const auto before = static_cast<double>(n_moves);
    n_moves = std::min(n_moves, std::max(kFewestCutMoves, static_cast<std::size_t>(share * before)));
    double& flops = plan.flops_per_particle[k];
    flops = plan.hold_flops + (flops - plan.hold_flops) * static_cast<double>(n_moves) / before;
  }
  plan.starved = true;
}

// For a budget that leaves one replica less than small populations with all their moves cost: both shrink,
// particles no further than to kLeastParticles. Returns particles at the last level.
double starve(Plan& plan, const std::vector<double>& shape, double left, double unit, double laws) {
  const double least = static_cast<double>(kLeastParticles) / laws,
               small = static_cast<double>(kFewestParticles) / laws;
  const ParticleCost cost = cost_of(plan, shape, unit);
  const double n = std::max(least, small * std::sqrt(std::max(0.0, left) / (small * cost.all)));
  const double moves = cost.all - cost.passes;
  cut_moves(plan, moves > 0.0 ? std::clamp((left / n - cost.passes) / moves, 0.0, 1.0) : 1.0);
  return std::clamp(left / cost_of(plan, shape, unit).all, least, n);
}

// Particles at the last level for the wanted relative error. The pilot's relative variance times its
// particles is what one particle has; twice that, since the pilot knows it badly.
double particles_for(double rel_error, const TokensplitConfig& c, const PilotResult& pilot, double unit) {
  const double variance = std::max(pilot.run.genealogy_variance, pilot.run.level_variance);
  const double one = variance * static_cast<double>(pilot_config(c, unit).n_particles);
  return 2.0 * one / (rel_error * rel_error * static_cast<double>(c.replicas));
}

// Of plain sampling, where there are no levels below the event: all that is left, but for a frequent event.
std::size_t plain_draw_of(const TokensplitConfig& c, const PilotResult& pilot, double unit) {
  if (c.first_draw > 0 || pilot.run.log_p > std::log(c.survive_fraction)) return first_draw_of(c);
  const double left = (c.budget - pilot.work.flops / unit) / static_cast<double>(c.replicas);
  return std::max(first_draw_of(c), static_cast<std::size_t>(std::clamp(left, 0.0, kMostPlainDraw)));
}

}  // namespace

void TokensplitConfig::validate() const {
  if (budget != 0.0 && !(budget >= 1000.0 && std::isfinite(budget)))
    throw InputError("budget {}: tokensplit needs at least 1000 forward passes", budget);
  if (replicas < 2 || replicas > kMostReplicas)
    throw InputError(
        "{} replicas: expected at least 2, since the interval comes from their spread, and at "
        "most {}",
        replicas, kMostReplicas);
  if (!(rel_error >= 0.0 && std::isfinite(rel_error)))
    throw InputError("relative error {}: expected a positive number", rel_error);
  if (!(survive_fraction > 0.0 && survive_fraction < 1.0))
    throw InputError("survive fraction {}: expected a number between 0 and 1", survive_fraction);
  if (!(forgotten > 0.0 && forgotten < 1.0))
    throw InputError("forgotten {}: expected a correlation between 0 and 1", forgotten);
  if (!(taper >= 1.0 && taper <= kMostTaper))
    throw InputError("taper {}: expected a number from 1 to {}", taper, kMostTaper);
  if (particles == 1 || particles > kMostParticles)
    throw InputError("{} particles: expected 2 to {}", particles, kMostParticles);
  if (first_draw > kMostFirstDraw)
    throw InputError("a first draw of {}: expected at most {}", first_draw, kMostFirstDraw);
  if (moves > kMostMoves) throw InputError("{} moves: expected 1 to {} per level", moves, kMostMoves);
}

double Sizes::bytes(const ScorerBytes& scorer, const TokenProblem& problem) const {
  const double input = sizeof(TokenId) * static_cast<double>(problem.length()) +
                       sizeof(std::uint64_t) * static_cast<double>(problem.n_parts());
  const double drawn = 2.0 * input + scorer.scored + 64.0, moved = scorer.held + input + 64.0;
  return static_cast<double>(std::max(first_draw, most())) * drawn + static_cast<double>(most()) * moved;
}

// States, a copy while they are resampled, and the tokens.
double Sizes::token_bytes(std::size_t length) const {
  const double sequence = 3.0 * sizeof(TokenId) * static_cast<double>(length) + 64.0;
  return static_cast<double>(std::max(first_draw, most())) * sequence;
}

Sizes asked_sizes(const TokensplitConfig& c) {
  const double first =
      std::min(static_cast<double>(most_particles(c)), c.taper * static_cast<double>(c.particles));
  return {.first_draw = first_draw_of(c), .at_level = {static_cast<std::size_t>(first)}};
}

namespace {

// changed: the first position that each part can change.
double default_budget(const ModelConfig& config, std::size_t length, std::span<const std::size_t> changed,
                      Device device) {
  constexpr double kRescored = 1.9e6, kOnDevice = 2.0;
  // For the sake of time, of which a device needs less: passes, and flops, which end first in large models. Ten
  // minutes or so on two cores. With fewer passes than kLeast nothing is scanned (tokensplit.cpp).
  constexpr double kLeast = 1.2e4, kUsualLeast = 2e4, kMostFlops = 1e14, kMostFlopsOnDevice = 4e15;
  const bool on_device = device == Device::kCuda;
  const double affordable = (on_device ? kMostFlopsOnDevice : kMostFlops) / forward_flops(config, length);
  const double most = std::clamp(affordable, kLeast, on_device ? 8e5 : 4e5);
  double flops = 2.0 * static_cast<double>(config.d_model * config.d_vocab) / 3.0;  // a margin test, or so
  for (const std::size_t i : changed)
    flops += rescoring_flops(config, length, i) / static_cast<double>(changed.size());
  const double budget =
      std::clamp(kRescored * flops / forward_flops(config, length), std::min(kUsualLeast, most), most);
  return on_device ? kOnDevice * budget : budget;
}

}  // namespace

double tokensplit_budget(const ModelConfig& config, const Distribution& dist, Device device) {
  return default_budget(config, dist.length(), free_positions(dist), device);
}

double tokensplit_budget(const ModelConfig& config, const InputLaw& law, Device device) {
  std::vector<std::size_t> changed = law.free_parts();
  for (std::size_t& part : changed) part = law.first_position(part);
  return default_budget(config, law.facts().max_length, changed, device);
}

std::size_t look_size(const TokensplitConfig& c) {
  constexpr double kShare = 0.01;
  return std::clamp(static_cast<std::size_t>(kShare * c.budget), std::size_t{64}, kUsualMostFirstDraw);
}

PilotConfig pilot_config(const TokensplitConfig& c, double unit) {
  const auto n = std::clamp(static_cast<std::size_t>(c.budget / 2000.0), std::size_t{64}, std::size_t{256});
  return {.n_particles = n,
          .initial_particles = std::max(first_draw_of(c), n),
          .survive_fraction = c.survive_fraction,
          .forgotten = c.forgotten,
          .max_moves = c.moves > 0 ? c.moves : kUsualMostMoves,
          .flops = kPilotShare * c.budget * unit};
}

std::size_t Sizes::most() const { return *std::max_element(at_level.begin(), at_level.end()); }

Sizes sizes_of(const TokensplitConfig& c, PilotResult& pilot, double unit, std::size_t laws) {
  const std::size_t n_levels = pilot.plan.levels.size();
  const std::size_t first_draw = n_levels == 1 ? plain_draw_of(c, pilot, unit) : first_draw_of(c);
  const std::vector<double> shape = shape_of(n_levels, c.taper);
  const double per_particle = cost_of(pilot.plan, shape, unit).all;
  const double of_draw = n_levels == 1 ? 1.0 : 1.0 + pilot.plan.first_held;
  const double left = (c.budget - pilot.work.flops / unit) / static_cast<double>(c.replicas) -
                      of_draw * static_cast<double>(first_draw);
  const double fewest = static_cast<double>(kFewestParticles) / static_cast<double>(laws);
  double n = static_cast<double>(c.particles);
  if (c.particles == 0 && left < fewest * per_particle) {
    n = starve(pilot.plan, shape, left, unit, static_cast<double>(laws));
  } else if (c.particles == 0) {
    n = per_particle > 0.0 ? left / per_particle : fewest;
    // A first level that holds more than the usual first draw is drawn, too.
    const auto drawn = static_cast<double>(first_draw);
    if (n_levels > 1 && shape.front() * n > drawn)
      n = (left + of_draw * drawn) / (per_particle + of_draw * shape.front());
    if (c.rel_error > 0.0) n = std::min(n, particles_for(c.rel_error, c, pilot, unit));
    n = std::clamp(n, fewest, static_cast<double>(kUsualMostParticles));
  }
  Sizes sizes;
  for (const double s : shape)
    sizes.at_level.push_back(std::min(most_particles(c), static_cast<std::size_t>(std::lround(s * n))));
  sizes.first_draw = std::max(first_draw, sizes.at_level.front());
  sizes.flops =
      unit * (of_draw * static_cast<double>(sizes.first_draw) + n * cost_of(pilot.plan, shape, unit).all);
  return sizes;
}

}  // namespace deeptail
