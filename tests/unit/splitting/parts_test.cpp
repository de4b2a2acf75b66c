// Levels, resampling and genealogy on their own.
#include <gtest/gtest.h>

#include <algorithm>

#include "unit/splitting/line.h"

namespace deeptail {
namespace {

TEST(ChooseLevel, IsTheScoreThatTheWantedNumberReach) {
  const std::vector<double> scores = {5, 1, 4, 2, 3};
  EXPECT_EQ(choose_level(scores, 2, -kInfinity, 10.0), 4.0);
  EXPECT_EQ(choose_level(scores, 2, -kInfinity, 3.5), 3.5);
  EXPECT_EQ(choose_level(scores, 5, 1.0, 10.0), 2.0);  // 1 would not rise
  EXPECT_TRUE(std::isnan(choose_level(scores, 2, 5.0, 10.0)));
  EXPECT_TRUE(std::isnan(choose_level({}, 2, 5.0, 10.0)));
  const std::vector<double> tied = {1.0, 1.0, 4.0, 1.0, 1.0}, equal(5, 1.0);
  EXPECT_EQ(choose_level(tied, 2, -kInfinity, 10.0), 4.0);  // all reach 1
  EXPECT_EQ(choose_level(tied, 2, -kInfinity, 0.5), 0.5);
  EXPECT_TRUE(std::isnan(choose_level(equal, 2, -kInfinity, 10.0)));
  EXPECT_EQ(choose_level(equal, 2, -kInfinity, 1.0), 1.0);
}

TEST(Resample, GivesEverySurvivorItsShare) {
  const std::vector<std::uint32_t> survivors = {3, 8, 9};
  const auto systematic = resample(survivors, 10, Resampling::kSystematic, 1, 0);
  ASSERT_EQ(systematic.size(), 10u);
  for (const std::uint32_t s : survivors) {
    const auto copies = std::count(systematic.begin(), systematic.end(), s);
    EXPECT_GE(copies, 3);
    EXPECT_LE(copies, 4);
  }
  // Multinomial: 3000 draws, each of three 1000 +- 5 * 25.8 (false alarm 2e-6).
  const auto multinomial = resample(survivors, 3000, Resampling::kMultinomial, 1, 0);
  for (const std::uint32_t s : survivors)
    EXPECT_NEAR(std::count(multinomial.begin(), multinomial.end(), s), 1000, 129);
  EXPECT_NE(resample(survivors, 100, Resampling::kMultinomial, 1, 1),
            resample(survivors, 100, Resampling::kMultinomial, 1, 0));
}

TEST(Resample, SystematicIsUnbiasedOverItsShift) {
  const std::vector<std::uint32_t> survivors = {0, 1, 2};
  std::vector<double> copies(3, 0.0);
  for (std::uint64_t seed = 1; seed <= 3000; ++seed)
    for (const std::uint32_t s : resample(survivors, 4, Resampling::kSystematic, seed, 0)) copies[s] += 1.0;
  for (const double c : copies) EXPECT_NEAR(c / 3000, 4.0 / 3.0, 5 * std::sqrt(2.0 / 9 / 3000));
}

TEST(Genealogy, OneLevelIsTheBinomialVariance) {
  Genealogy genealogy(100);
  std::vector<std::uint32_t> survivors(20);
  for (std::uint32_t i = 0; i < 20; ++i) survivors[i] = i;
  Level level;
  genealogy.survive(survivors, level);
  EXPECT_EQ(level.survive_fraction, 0.2);
  EXPECT_EQ(level.ancestors, 20u);
  // 1 - n / (n - 1) * (1 - 1 / m), against (1 - p) / (p (n - 1)).
  EXPECT_NEAR(genealogy.variance(), 0.8 / 0.2 / 99, 1e-12);
  EXPECT_NEAR(genealogy.level_variance(), 0.8 / 0.2 / 100, 1e-12);
}

TEST(Genealogy, SiblingsThatLiveAndDieTogetherRaiseTheVariance) {
  Genealogy genealogy(4);
  Level level;
  genealogy.survive(std::vector<std::uint32_t>{0, 1}, level);
  genealogy.resample(std::vector<std::uint32_t>{0, 0, 1, 1});
  genealogy.survive(std::vector<std::uint32_t>{0, 1}, level);
  EXPECT_EQ(level.ancestors, 1u);
  EXPECT_NEAR(level.sibling_correlation, 1.0, 1e-12);
  EXPECT_NEAR(genealogy.level_variance(), 0.25 + 0.25 * 2, 1e-12);
  EXPECT_NEAR(genealogy.variance(), 1.0, 1e-12);
}

TEST(FirstDraw, ItsBoundIsTheExactBinomialOne) {
  EXPECT_NEAR(std::exp(FirstDraw{.n = 100}.log_upper()), 1 - std::pow(0.05, 0.01), 1e-14);
  // The p with Pr[at most 3 of 50] = 0.05.
  const double p = std::exp(FirstDraw{.n = 50, .hits = 3}.log_upper());
  double at_most = 0.0, ways = 1.0;
  for (int k = 0; k <= 3; ++k) {
    at_most += ways * std::pow(p, k) * std::pow(1 - p, 50 - k);
    ways *= (50.0 - k) / (k + 1.0);
  }
  EXPECT_NEAR(at_most, 0.05, 1e-10);
  EXPECT_EQ(FirstDraw{}.log_upper(), 0.0);
  EXPECT_EQ((FirstDraw{.n = 5, .hits = 5}.log_upper()), 0.0);
}

}  // namespace
}  // namespace deeptail
