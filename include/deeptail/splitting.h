// Multilevel splitting: the probability of a rare event as a product of survival fractions over rising
// levels.
//
// It knows nothing of language models: a population of particles is anything that can be sampled, scored,
// copied and moved (concept Particles). The event is score >= threshold. With levels fixed beforehand the
// product is unbiased for any number of moves; with levels chosen from the population it is consistent
// (docs/splitting.md). Particles may be drawn from another law than the one asked about, or pay other sums
// than 1 for the event: then the answer is the mean of what they pay (concept Paying).
#pragma once

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "deeptail/core.h"
#include "deeptail/enum_names.h"

namespace [[gnu::visibility("default")]] deeptail {

// What the moves of one level did.
struct MoveStats {
  std::uint64_t proposed = 0, accepted = 0;
  std::size_t moves = 0;            // per particle
  double step_size = 0.0;           // of kernels that have one
  double mean_squared_jump = 0.0;   // from where a particle began the level, in the kernel's own units
  double parent_correlation = 0.0;  // what is left of the start of the level, 1: all, 0: nothing; if measured
  double acceptance() const {
    return proposed == 0 ? 0.0 : static_cast<double>(accepted) / static_cast<double>(proposed);
  }
};

// A population. Random numbers are keyed by the run's seed, the level and the particle.
template <class P>
concept Particles = requires(P& p, const P& c, std::size_t n, std::uint64_t seed, std::span<double> scores,
                             std::span<const std::uint32_t> parents, double level) {
  p.sample(n, seed);  // becomes n independent draws from the prior
  { c.size() } -> std::convertible_to<std::size_t>;
  p.scores(scores);     // [size()]; exact
  p.resample(parents);  // particle i becomes a copy of what parents[i] was
  // (level, its number, seed): all particles are at or above the level; leaves (prior given score >= level) as
  // it is.
  { p.move(level, n, seed) } -> std::same_as<MoveStats>;
};

// Particles that pay: the run's answer is the mean of payoff(x) over draws x from the particles' own law,
// the base. With a base q instead of the prior, payoff = prior(x) / q(x) where x has the event gives the
// event's probability under the prior, whatever q is.
template <class P>
concept Paying = Particles<P> &&
    requires(P& p, const P& c, std::span<const std::uint32_t> who, std::span<double> out) {
  p.log_payoffs(who, out);                          // [who.size()]; minus infinity for nothing
  { c.pays_below() } -> std::convertible_to<bool>;  // do particles below the threshold pay, too?
};

// What the counters of the random numbers have room for (step_index), and more than anyone needs.
inline constexpr std::size_t kMostParticles = (std::size_t{1} << 24) - 1;
inline constexpr std::size_t kMostMoves = (std::size_t{1} << 22) - 1;  // per level
inline constexpr std::size_t kMostLevels = std::size_t{1} << 14;
inline constexpr std::size_t kMostFirstDraw = std::size_t{1} << 30;
inline constexpr std::size_t kMostReplicas = 10000;

enum class Resampling { kSystematic, kMultinomial };

struct SplittingConfig {
  std::size_t n_particles = 1000;
  std::size_t initial_particles = 0;    // of the first draw, when larger: its best n_particles go on
  std::vector<std::size_t> sizes = {};  // particles that move at each level; beyond its end, n_particles
  double survive_fraction = 0.4;        // wanted at each adaptive level
  double threshold = 0.0;
  std::vector<double> levels = {};  // frozen, ascending, the last one is the threshold; empty: adaptive
  std::size_t max_levels = 200;     // the last one is the threshold whatever the population says
  Resampling resampling = Resampling::kSystematic;

  std::size_t first_draw() const { return initial_particles > n_particles ? initial_particles : n_particles; }
  std::size_t size_at(std::size_t level) const { return level < sizes.size() ? sizes[level] : n_particles; }
  void validate() const;
};

// One level of a run.
struct Level {
  double level = 0.0;
  double survive_fraction = 0.0;
  std::size_t particles = 0, survivors = 0;
  std::size_t ancestors = 0;         // distinct first-draw ancestors of the survivors
  double sibling_correlation = 0.0;  // of survival among particles copied from one parent
  MoveStats moves = {};              // made at this level, by copies of its survivors
};

enum class SplittingEnd {
  kReached,  // some particles have the event
  kExtinct,  // no particle was at or above the next (frozen or last) level
  kPlateau,  // every particle has the same score, below the threshold: nothing tells which are closer
  kStopped,  // an observer ended it
};
template <>
struct EnumNames<SplittingEnd> {
  static constexpr std::string_view kAll[] = {"reached", "extinct", "plateau", "stopped"};
};

// Independent draws from the prior, or a base law, and how many of them had the event.
struct FirstDraw {
  std::size_t n = 0, hits = 0;
  double log_most =
      0.0;  // log of the largest prior / base that an input can have; 0: they are the prior's own
  FirstDraw& operator+=(const FirstDraw& other);
  // All that they say of the event: an upper bound for log p, one-sided (Clopper and Pearson). What comes
  // after them may have lost the way to the event without a trace, so where it was not reached no level
  // lowers the bound.
  double log_upper(double confidence = 0.95) const;
};

struct SplittingRun {
  SplittingEnd end = SplittingEnd::kReached;
  double log_p = 0.0;            // log of what particles pay on average; minus infinity where nobody did
  double log_reach = 0.0;        // log of the product of the fractions: how likely the base law gets this far
  bool weighted = false;         // some did not pay 1
  double effective_share = 1.0;  // of the last survivors, (sum of payoffs)^2 / (n times the sum of squares)
  FirstDraw first = {};          // under the base law
  // Relative variances of p, estimated from this run alone.
  double genealogy_variance = 0.0;  // from shared ancestors; at least what independent particles would have
  double level_variance = 0.0;      // summed over levels, with the correlation of siblings
  std::vector<Level> levels = {};
};

// --- parts of the loop ---

// The level that `wanted` of the scores reach, but not all; above `current`, and the threshold at most. NaN
// when there is none.
double choose_level(std::span<const double> scores, std::size_t wanted, double current, double threshold);

// parents: [n], drawn from survivors with equal weights; each survivor is expected n / survivors times.
std::vector<std::uint32_t> resample(std::span<const std::uint32_t> survivors, std::size_t n,
                                    Resampling resampling, std::uint64_t seed, std::size_t level);

// Who descends from whom, and what that says about the variance.
class Genealogy {
 public:
  explicit Genealogy(std::size_t n);
  // Survival of the present particles at one level; fills ancestors and sibling_correlation.
  void survive(std::span<const std::uint32_t> survivors, Level& level);
  void resample(std::span<const std::uint32_t> parents);
  // The last survivors count by what they pay, in logs: [survivors]. Returns their effective share.
  double weigh(std::span<const std::uint32_t> survivors, std::span<const double> log_payoffs);
  // Relative variance of the product, from the ancestors of the last survivors (Lee and Whiteley 2018).
  double variance() const;
  // Relative variance summed over levels: (1 - p) / (p n) times (1 + correlation among siblings).
  double level_variance() const { return level_variance_; }
  double independent_variance() const { return independent_variance_; }

 private:
  std::vector<std::uint32_t> ancestor_, parent_;  // [n]
  bool has_parents_ = false;
  double log_factor_ = 0.0;  // sum of log(n / (n - 1))
  double same_ancestor_ = 1.0;
  double level_variance_ = 0.0, independent_variance_ = 0.0;
};

FirstDraw hits_among(std::span<const double> scores, double threshold);

// log(e^a + e^b).
double log_add(double a, double b);
// log of the mean over n of what some of them pay, in logs; the others pay nothing.
double log_mean_payoff(std::span<const double> log_payoffs, std::size_t n);

// --- the loop ---

// Called after each level is settled; returning false ends the run.
template <class O, class P>
concept Observer = requires(O& o, const Level& level, P& particles, std::span<const double> scores) {
  { o(level, particles, scores) } -> std::convertible_to<bool>;
};

// Did particles whose scores or moves may be cut short leave them unfinished?
template <class P>
bool cut_short(const P& particles) {
  if constexpr (requires { particles.stopped(); }) return particles.stopped();
  return false;
}

// What has been paid. A particle pays once, where it ends: those below the next level when they are dropped
// (the tail integral, docs/splitting.md), the others at the event.
template <class P>
class Payments {
 public:
  explicit Payments(P& particles) : particles_(particles) {}

  // The particles that do not go on; log_reach: of the population that they belong to.
  void dropped(std::span<const double> scores, double level, double log_reach) {
    if constexpr (Paying<P>) {
      if (!particles_.pays_below()) return;
      std::vector<std::uint32_t> who;
      for (std::size_t i = 0; i < scores.size(); ++i)
        if (!(scores[i] >= level)) who.push_back(static_cast<std::uint32_t>(i));
      log_paid_ = log_add(log_paid_, log_reach + log_mean_payoff(ask(who), scores.size()));
    }
  }
  // The survivors of the last level, out of n.
  void reached(std::span<const std::uint32_t> survivors, std::size_t n, double log_reach_before,
               Genealogy& genealogy, SplittingRun& run) {
    if constexpr (Paying<P>) {
      const auto payoffs = ask(survivors);
      run.weighted = std::any_of(payoffs.begin(), payoffs.end(), [](double v) { return v != 0.0; });
      run.effective_share = genealogy.weigh(survivors, payoffs);
      log_paid_ = log_add(log_paid_, log_reach_before + log_mean_payoff(payoffs, n));
    } else {
      log_paid_ = run.log_reach;
    }
  }
  double log_paid() const { return log_paid_; }

 private:
  std::span<const double> ask(std::span<const std::uint32_t> who) {
    log_payoffs_.resize(who.size());
    if (!who.empty()) particles_.log_payoffs(who, log_payoffs_);
    return log_payoffs_;
  }

  P& particles_;
  std::vector<double> log_payoffs_;
  double log_paid_ = -std::numeric_limits<double>::infinity();
};

template <Particles P, Observer<P>... O>
SplittingRun run_splitting(P& particles, const SplittingConfig& config, std::uint64_t seed, O&... observers) {
  config.validate();
  SplittingRun run;
  particles.sample(config.first_draw(), seed);
  Genealogy genealogy(particles.size());
  Payments<P> payments(particles);
  std::vector<double> scores;
  std::vector<std::uint32_t> survivors;
  double level = -std::numeric_limits<double>::infinity();
  const auto finish = [&](SplittingEnd end) {
    run.end = end;
    run.genealogy_variance = std::max(genealogy.variance(), genealogy.independent_variance());
    run.level_variance = genealogy.level_variance();
    run.log_p =
        end == SplittingEnd::kStopped ? -std::numeric_limits<double>::infinity() : payments.log_paid();
    return run;
  };
  for (std::size_t k = 0;; ++k) {
    scores.resize(particles.size());
    particles.scores(scores);
    if (cut_short(particles)) return finish(SplittingEnd::kStopped);
    if (k == 0) run.first = hits_among(scores, config.threshold);
    const std::size_t wanted = particles.size() > config.n_particles
                                   ? config.n_particles
                                   : static_cast<std::size_t>(std::ceil(
                                         config.survive_fraction * static_cast<double>(particles.size())));
    if (!config.levels.empty())
      level = config.levels[k];
    else
      level = k + 1 >= config.max_levels ? config.threshold
                                         : choose_level(scores, wanted, level, config.threshold);
    if (std::isnan(level)) return finish(SplittingEnd::kPlateau);

    survivors.clear();
    for (std::size_t i = 0; i < scores.size(); ++i)
      if (scores[i] >= level) survivors.push_back(static_cast<std::uint32_t>(i));
    Level& record = run.levels.emplace_back(Level{.level = level});
    genealogy.survive(survivors, record);
    payments.dropped(scores, level, run.log_reach);
    if (survivors.empty()) return finish(SplittingEnd::kExtinct);
    const double log_reach_before = run.log_reach;
    run.log_reach += std::log(record.survive_fraction);
    const bool go_on = (observers(record, particles, scores) && ... && true);
    if (level >= config.threshold) {
      payments.reached(survivors, scores.size(), log_reach_before, genealogy, run);
      return finish(SplittingEnd::kReached);
    }
    if (!go_on) return finish(SplittingEnd::kStopped);

    const auto parents = resample(survivors, config.size_at(k), config.resampling, seed, k);
    particles.resample(parents);
    genealogy.resample(parents);
    record.moves = particles.move(level, k, seed);
    if (cut_short(particles)) return finish(SplittingEnd::kStopped);
  }
}

// --- replicas ---

// Independent runs with the same frozen levels, taken together. None reached: the upper end is what all
// first draws allow.
struct ReplicaSummary {
  double log_p = 0.0;                    // log of the mean of p; runs that ended early count as 0
  double log_low = 0.0, log_high = 0.0;  // interval for log p
  double confidence = 0.95;
  double relative_sd = 0.0;            // of the mean, from the spread of the replicas
  double genealogy_relative_sd = 0.0;  // of the mean, as the replicas' own genealogies see it
  double log_certain_low = 0.0;        // Markov: p is below this with at most 5% chance, whatever the spread
  std::size_t extinct = 0;
  bool disagree = false;  // the spread is larger than the genealogies explain (false alarm 1e-3)
};
// share: 1, unless others than these might have become the answer: by Markov's inequality the sum of those
// that did is at most that of all, so lower bounds that rest on it are this much lower. kNotUnbiased: nothing rests on
// it, as for levels that were chosen by the runs themselves.
inline constexpr double kNotUnbiased = 0.0;
ReplicaSummary combine_replicas(std::span<const SplittingRun> runs, double confidence = 0.95,
                                double share = 1.0);

// The seed of an independent part (a replica, a pilot) of a run with this seed.
std::uint64_t derived_seed(std::uint64_t seed, std::uint64_t part);

}  // namespace deeptail
