// The level loop on a line, where every probability is known.
#include <gtest/gtest.h>

#include "sizes.h"
#include "unit/splitting/line.h"

namespace deeptail {
namespace {

SplittingConfig adaptive(double threshold) {
  return {.n_particles = 200, .survive_fraction = 0.3, .threshold = threshold};
}

TEST(Splitting, FrozenLevelsAreUnbiasedEvenWithFewMoves) {
  // P(x >= 4) = 3.2e-5. Mean of p / truth over 400 seeds within 4 standard errors: false alarm 6e-5.
  SplittingConfig config{.n_particles = 100, .threshold = 4.0, .levels = {1.0, 1.8, 2.5, 3.1, 3.6, 4.0}};
  for (const std::size_t moves : {std::size_t{1}, std::size_t{10}}) {
    double sum = 0.0, squares = 0.0;
    constexpr int kSeeds = sized(400, 20);
    for (int seed = 1; seed <= kSeeds; ++seed) {
      LineParticles particles{.n_moves = moves};
      const double ratio =
          std::exp(run_splitting(particles, config, static_cast<std::uint64_t>(seed)).log_p) /
          normal_tail(4.0);
      sum += ratio;
      squares += ratio * ratio;
    }
    if (kSeeds < 400) continue;
    const double mean = sum / kSeeds, error = std::sqrt((squares / kSeeds - mean * mean) / kSeeds);
    EXPECT_LT(std::abs(mean - 1.0), 4 * error) << moves << " moves, standard error " << error;
    EXPECT_LT(error, 0.2);
  }
}

TEST(Splitting, AdaptiveLevelsReachFarTails) {
  LineParticles particles;
  const SplittingRun run = run_splitting(
      particles, {.n_particles = sized(2000, 1000), .survive_fraction = 0.3, .threshold = 6.0}, 1);
  ASSERT_EQ(run.end, SplittingEnd::kReached);
  // Its own variance estimate gives the scale; 5 of them.
  const double sd = std::sqrt(std::max(run.genealogy_variance, run.level_variance));
  EXPECT_LT(std::abs(run.log_p - std::log(normal_tail(6.0))), 5 * sd);
  EXPECT_LT(sd, 0.4);
  EXPECT_EQ(run.levels.back().level, 6.0);
  for (std::size_t k = 1; k < run.levels.size(); ++k) EXPECT_GT(run.levels[k].level, run.levels[k - 1].level);
}

TEST(Splitting, VarianceEstimatesMatchTheSpreadOverSeeds) {
  const SplittingConfig config{
      .n_particles = 200, .threshold = 4.0, .levels = {1.0, 1.8, 2.5, 3.1, 3.6, 4.0}};
  double sum = 0.0, squares = 0.0, genealogy = 0.0, by_level = 0.0;
  constexpr int kSeeds = sized(300, 10);
  for (int seed = 1; seed <= kSeeds; ++seed) {
    LineParticles particles{.n_moves = 10};
    const SplittingRun run = run_splitting(particles, config, static_cast<std::uint64_t>(seed));
    const double ratio = std::exp(run.log_p) / normal_tail(4.0);
    sum += ratio;
    squares += ratio * ratio;
    genealogy += run.genealogy_variance / kSeeds;
    by_level += run.level_variance / kSeeds;
  }
  if (kSeeds < 300) return;
  const double mean = sum / kSeeds, variance = squares / kSeeds - mean * mean;
  // A sample variance of 300 has a relative error near 10%; resampling is systematic, which the genealogy
  // does not credit: allow a factor of 2.
  EXPECT_GT(genealogy, 0.5 * variance);
  EXPECT_LT(genealogy, 2.0 * variance);
  EXPECT_GT(by_level, 0.5 * variance);
  EXPECT_LT(by_level, 2.0 * variance);
}

TEST(Splitting, ALargerFirstDrawGivesOneDeepFirstLevel) {
  LineParticles particles;
  SplittingConfig config = adaptive(4.0);
  config.initial_particles = 10000;
  const SplittingRun run = run_splitting(particles, config, 1);
  ASSERT_EQ(run.end, SplittingEnd::kReached);
  EXPECT_EQ(run.levels[0].particles, 10000u);
  EXPECT_EQ(run.levels[0].survivors, 200u);
  EXPECT_EQ(run.levels[0].ancestors, 200u);
  EXPECT_EQ(run.levels[1].particles, 200u);
}

TEST(Splitting, ACertainEventIsOne) {
  LineParticles particles;
  const SplittingRun run = run_splitting(particles, adaptive(-100.0), 1);
  EXPECT_EQ(run.end, SplittingEnd::kReached);
  EXPECT_EQ(run.log_p, 0.0);
  EXPECT_EQ(run.levels.size(), 1u);
  EXPECT_EQ(run.first.hits, 200u);
}

TEST(Splitting, AnImpossibleEventEndsWithABound) {
  LineParticles particles{.score = [](double x) { return std::min(x, 2.0); }};
  const SplittingRun run = run_splitting(particles, adaptive(3.0), 1);
  EXPECT_EQ(run.end, SplittingEnd::kPlateau);
  EXPECT_EQ(run.log_p, -kInfinity);
  EXPECT_EQ(run.first.n, 200u);
  EXPECT_EQ(run.first.hits, 0u);
}

TEST(Splitting, AConstantScoreIsAPlateau) {
  LineParticles particles{.score = [](double) { return -1.0; }};
  const SplittingRun run = run_splitting(particles, adaptive(0.0), 1);
  EXPECT_EQ(run.end, SplittingEnd::kPlateau);
  EXPECT_EQ(run.first.n, 200u);
}

TEST(Splitting, ScoresThatAreNotNumbersNeverSurvive) {
  LineParticles particles{.score = [](double) { return std::nan(""); }};
  EXPECT_EQ(run_splitting(particles, adaptive(0.0), 1).end, SplittingEnd::kPlateau);
}

TEST(Splitting, QuantisedScoresReachTheThreshold) {
  // Steps of 0.5: ties at every level. P(floor(2x)/2 >= 4) = P(x >= 4).
  LineParticles particles{.score = [](double x) { return std::floor(2 * x) / 2; }};
  const SplittingRun run =
      run_splitting(particles, {.n_particles = 2000, .survive_fraction = 0.3, .threshold = 4.0}, 1);
  ASSERT_EQ(run.end, SplittingEnd::kReached);
  EXPECT_LT(std::abs(run.log_p - std::log(normal_tail(4.0))), 5 * std::sqrt(run.genealogy_variance));
}

TEST(Splitting, FrozenLevelsOutOfReachGoExtinct) {
  LineParticles particles;
  SplittingConfig config = adaptive(9.0);
  config.levels = {1.0, 8.0, 9.0};
  const SplittingRun run = run_splitting(particles, config, 1);
  EXPECT_EQ(run.end, SplittingEnd::kExtinct);
  EXPECT_EQ(run.log_p, -kInfinity);
}

TEST(Splitting, TheLevelCapAsksForTheThreshold) {
  LineParticles particles;
  SplittingConfig config = adaptive(8.0);
  config.max_levels = 3;
  const SplittingRun run = run_splitting(particles, config, 1);
  EXPECT_EQ(run.end, SplittingEnd::kExtinct);
  EXPECT_EQ(run.levels.size(), 3u);
}

TEST(Splitting, AnObserverSeesEveryLevelAndCanStop) {
  LineParticles particles;
  std::size_t seen = 0;
  const auto count = [&](const Level& level, LineParticles& p, std::span<const double> scores) {
    EXPECT_EQ(p.size(), scores.size());
    EXPECT_EQ(level.particles, p.size());
    return ++seen < 3;
  };
  const SplittingRun run = run_splitting(particles, adaptive(8.0), 1, count);
  EXPECT_EQ(run.end, SplittingEnd::kStopped);
  EXPECT_EQ(seen, 3u);
  EXPECT_EQ(run.first.n, 200u);
}

TEST(Splitting, RefusesSettingsThatMakeNoSense) {
  LineParticles particles;
  EXPECT_THROW(run_splitting(particles, {.n_particles = 1}, 1), InputError);
  EXPECT_THROW(run_splitting(particles, {.survive_fraction = 1.0}, 1), InputError);
  EXPECT_THROW(run_splitting(particles, {.threshold = 2.0, .levels = {1.0, 1.0, 2.0}}, 1), InputError);
  EXPECT_THROW(run_splitting(particles, {.threshold = 2.0, .levels = {1.0}}, 1), InputError);
}

}  // namespace
}  // namespace deeptail
