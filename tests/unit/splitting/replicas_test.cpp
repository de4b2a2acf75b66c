// Replicas taken together: mean, coverage of the interval, disagreement.
#include <gtest/gtest.h>

#include "sizes.h"
#include "unit/splitting/line.h"

namespace deeptail {
namespace {

SplittingRun reached(double log_p, double variance) {
  return {.log_p = log_p, .log_upper = log_p, .genealogy_variance = variance, .level_variance = variance};
}

TEST(Replicas, MeanCountsExtinctRunsAsZero) {
  std::vector<SplittingRun> runs(4, reached(std::log(2e-6), 0.01));
  runs[0] = {.end = SplittingEnd::kExtinct, .log_p = -kInfinity, .log_upper = std::log(1e-4)};
  const ReplicaSummary all = combine_replicas(runs);
  EXPECT_NEAR(std::exp(all.log_p), 1.5e-6, 1e-18);
  EXPECT_EQ(all.extinct, 1u);
  EXPECT_LT(all.log_low, all.log_p);
  EXPECT_GT(all.log_high, all.log_p);
  EXPECT_NEAR(all.log_certain_low, std::log(1.5e-6 * 0.05), 1e-12);
}

TEST(Replicas, NoneReachedGivesTheUpperBound) {
  const std::vector<SplittingRun> runs(
      3, {.end = SplittingEnd::kExtinct, .log_p = -kInfinity, .log_upper = -9.0});
  const ReplicaSummary none = combine_replicas(runs);
  EXPECT_EQ(none.log_p, -kInfinity);
  EXPECT_EQ(none.log_low, -kInfinity);
  EXPECT_EQ(none.log_high, -9.0);
}

// Clopper and Pearson's bounds where splitting is plain sampling.
TEST(Replicas, OnlyDrawnTheyPool) {
  const Level drawn{.particles = 500};
  std::vector<SplittingRun> runs(4, {.end = SplittingEnd::kExtinct, .log_p = -kInfinity, .levels = {drawn}});
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
}

TEST(Replicas, DisagreementIsNoticed) {
  std::vector<SplittingRun> runs(8, reached(-14.0, 0.01));
  for (std::size_t i = 0; i < runs.size(); ++i) runs[i].log_p += 0.1 * (i % 2 ? 1 : -1);
  EXPECT_FALSE(combine_replicas(runs).disagree);
  for (std::size_t i = 0; i < runs.size(); ++i) runs[i].log_p += 1.0 * (i % 2 ? 1 : -1);
  EXPECT_TRUE(combine_replicas(runs).disagree);
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
