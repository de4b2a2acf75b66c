// Replicas taken together: mean, coverage of the interval, disagreement.
#include <gtest/gtest.h>

#include "sizes.h"
#include "unit/splitting/line.h"

namespace deeptail {
namespace {

SplittingRun reached(double log_p, double variance) {
  return {.log_p = log_p, .genealogy_variance = variance, .level_variance = variance};
}

TEST(Replicas, MeanCountsExtinctRunsAsZero) {
  std::vector<SplittingRun> runs(4, reached(std::log(2e-6), 0.01));
  runs[0] = {.end = SplittingEnd::kExtinct, .log_p = -kInfinity};
  const ReplicaSummary all = combine_replicas(runs);
  EXPECT_NEAR(std::exp(all.log_p), 1.5e-6, 1e-18);
  EXPECT_EQ(all.extinct, 1u);
  EXPECT_LT(all.log_low, all.log_p);
  EXPECT_GT(all.log_high, all.log_p);
  EXPECT_NEAR(all.log_certain_low, std::log(1.5e-6 * 0.05), 1e-12);
}

TEST(Replicas, NoneReachedGivesWhatFirstDrawsAllow) {
  const std::vector<SplittingRun> runs(
      3, {.end = SplittingEnd::kExtinct, .log_p = -kInfinity, .first = {.n = 1000}});
  const ReplicaSummary none = combine_replicas(runs);
  EXPECT_EQ(none.log_p, -kInfinity);
  EXPECT_EQ(none.log_low, -kInfinity);
  EXPECT_NEAR(none.log_high, std::log(1 - std::pow(0.05, 1.0 / 3000)), 1e-12);
}

// A mode that the levels lead away from: x below the needle has the event, and so has nobody else. Replicas
// without it in their first draw climb the other side and die out below the last level.
TEST(Replicas, TheUpperEndHoldsWhenAllDieOut) {
  const SplittingConfig config{.n_particles = 100, .threshold = 6.0, .levels = {1.0, 1.5, 2.0, 2.5, 6.0}};
  constexpr int kSeeds = sized(300, 10);
  // 4e-3 is just above what 800 draws without a hit allow, so the bound fails as often as it may.
  for (const double truth : {1e-5, 4e-3}) {
    const double needle = -normal_upper_quantile(truth);
    int died = 0, below = 0;
    for (int seed = 0; seed < kSeeds; ++seed) {
      std::vector<SplittingRun> runs;
      for (std::uint64_t r = 0; r < 8; ++r) {
        LineParticles particles{.score = [&](double x) { return x < needle ? 6.0 : std::min(x, 5.0); },
                                .n_moves = 1};
        runs.push_back(run_splitting(particles, config, derived_seed(static_cast<std::uint64_t>(seed), r)));
      }
      const ReplicaSummary all = combine_replicas(runs);
      died += all.extinct == runs.size();
      below += all.extinct == runs.size() && all.log_high < std::log(truth);
    }
    EXPECT_GT(died, 0) << truth;
    // 5 % nominal of 300: 15, standard deviation 3.8; more than 27 with a chance of 1e-3.
    EXPECT_LE(below, 27) << truth;
  }
}

// Clopper and Pearson's bounds where splitting is plain sampling.
TEST(Replicas, OnlyDrawnTheyPool) {
  const Level drawn{.particles = 500};
  std::vector<SplittingRun> runs(
      4, {.end = SplittingEnd::kExtinct, .log_p = -kInfinity, .first = {.n = 500}, .levels = {drawn}});
  EXPECT_NEAR(combine_replicas(runs).log_high, std::log(1.0 - std::pow(0.05, 1.0 / 2000)), 1e-12);
  runs.assign(
      4, {.end = SplittingEnd::kReached, .log_p = 0.0, .levels = {{.particles = 500, .survivors = 500}}});
  const ReplicaSummary certain = combine_replicas(runs);
  EXPECT_NEAR(certain.log_low, std::log(0.025) / 2000, 1e-12);
  EXPECT_EQ(certain.log_high, 0.0);
  // Two that agree by chance have no spread; 10 of 1000 draws have this interval (0.004806, 0.018312).
  runs.assign(2, {.log_p = std::log(0.01), .levels = {{.particles = 500, .survivors = 5}}});
  const ReplicaSummary few = combine_replicas(runs);
  EXPECT_NEAR(std::exp(few.log_low), 0.004806, 1e-6);
  EXPECT_NEAR(std::exp(few.log_high), 0.018313, 1e-6);
}

// What others might have made the answer lowers both bounds that rest on Markov's inequality.
TEST(Replicas, LowerBoundsKnowOfThoseThatAreMissing) {
  std::vector<SplittingRun> runs(2, reached(std::log(1e-6), 0.01));
  runs[1].log_p = std::log(1e-9);
  const ReplicaSummary all = combine_replicas(runs), some = combine_replicas(runs, 0.95, 0.25);
  EXPECT_NEAR(all.log_low, all.log_p + std::log(0.025), 1e-12);
  EXPECT_NEAR(some.log_low, all.log_low + std::log(0.25), 1e-12);
  EXPECT_NEAR(some.log_certain_low, all.log_certain_low + std::log(0.25), 1e-12);
  const ReplicaSummary biased = combine_replicas(runs, 0.95, kNotUnbiased);
  EXPECT_LT(biased.log_low, all.log_low - 1.0);
  EXPECT_EQ(biased.log_certain_low, -kInfinity);
  EXPECT_EQ(biased.log_high, all.log_high);
}

TEST(Replicas, DisagreementIsNoticed) {
  std::vector<SplittingRun> runs(8, reached(-14.0, 0.01));
  for (std::size_t i = 0; i < runs.size(); ++i) runs[i].log_p += 0.1 * (i % 2 ? 1 : -1);
  EXPECT_FALSE(combine_replicas(runs).disagree);
  for (std::size_t i = 0; i < runs.size(); ++i) runs[i].log_p += 1.0 * (i % 2 ? 1 : -1);
  EXPECT_TRUE(combine_replicas(runs).disagree);
}

// Replicas with this standard deviation of log p, each alive with the chance `alive`; their mean is the
// truth.
struct Misses {
  int high = 0, low = 0;
};
Misses misses_of(double sd, double alive, int trials) {
  const double truth = std::log(alive) + 0.5 * sd * sd;
  Misses out;
  for (int trial = 0; trial < trials; ++trial) {
    std::vector<SplittingRun> runs;
    for (std::uint32_t r = 0; r < 8; ++r) {
      const auto u = uniform64_pair({17, Stream::kMixing}, static_cast<std::uint64_t>(trial), r);
      const bool lives = unit_double(u[1]) < alive;
      runs.push_back({.end = lives ? SplittingEnd::kReached : SplittingEnd::kExtinct,
                      .log_p = lives ? sd * normal_quantile(unit_double(u[0]) + 0x1p-54) : -kInfinity});
      runs.back().log_p -= 20.0;  // 1 is no bound here
    }
    const ReplicaSummary all = combine_replicas(runs);
    out.high += truth - 20.0 > all.log_high;
    out.low += truth - 20.0 < all.log_low;
  }
  return out;
}

TEST(Replicas, LognormalOnesAreMissedAsOftenAsNominalOnBothSides) {
  // 2.5 % nominal of 1000: 25, standard deviation 5. More than 41 with a chance of 1e-3, fewer than 8 high,
  // where 2.2 % are right, likewise.
  constexpr int kTrials = sized(1000, 5);
  for (const double sd : {0.1, 0.3, 1.0, 2.0}) {
    const Misses misses = misses_of(sd, 1.0, kTrials);
    EXPECT_LE(misses.high, 41) << sd;
    EXPECT_LE(misses.low, 41) << sd;
    if (kTrials == 1000) {
      EXPECT_GE(misses.high, 8) << sd;
    }
  }
  // One in five dies out: no more misses than nominal.
  const Misses some_die = misses_of(1.0, 0.8, kTrials);
  EXPECT_LE(some_die.high, 41);
  EXPECT_LE(some_die.low, 41);
}

// Where log p hardly varies, the interval is Student's.
TEST(Replicas, SmallSpreadsHaveStudentsInterval) {
  std::vector<SplittingRun> runs;
  for (const double x : {-1.5, -1.0, -0.5, -0.1, 0.1, 0.5, 1.0, 1.5})
    runs.push_back(reached(-14.0 + 0.01 * x, 0.0));
  const ReplicaSummary all = combine_replicas(runs);
  const double half = student_t_quantile(0.975, 7) * all.relative_sd;
  EXPECT_NEAR((all.log_p - all.log_low) / half, 1.0, 0.01);
  EXPECT_NEAR((all.log_high - all.log_p) / half, 1.0, 0.03);
}

TEST(Replicas, IntervalsOfEightCoverAsOftenAsTheySay) {
  // 300 problems; 95% nominal, standard error 1.3%: between 91% and 99% with a false alarm near 1e-3.
  const SplittingConfig config{
      .n_particles = 100, .threshold = 4.0, .levels = {1.0, 1.8, 2.5, 3.1, 3.6, 4.0}};
  int covered = 0;
  constexpr int kProblems = sized(300, 10);
  for (int problem = 0; problem < kProblems; ++problem) {
    std::vector<SplittingRun> runs;
    for (std::uint64_t r = 0; r < 8; ++r) {
      LineParticles particles{.n_moves = 5};
      runs.push_back(run_splitting(particles, config, derived_seed(static_cast<std::uint64_t>(problem), r)));
    }
    const ReplicaSummary all = combine_replicas(runs);
    const double truth = std::log(normal_tail(4.0));
    covered += all.log_low <= truth && truth <= all.log_high;
  }
  if (kProblems < 300) return;
  EXPECT_GE(covered, 273);
  EXPECT_LE(covered, 297);
}

}  // namespace
}  // namespace deeptail
