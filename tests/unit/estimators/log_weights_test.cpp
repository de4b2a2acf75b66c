#include "estimators/log_weights.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/random.h"

namespace deeptail {
namespace {

TEST(LogWeights, SumsAndShares) {
  WeightSums sums, rest;
  EXPECT_EQ(sums.effective(), 0.0);
  EXPECT_EQ(sums.largest_share(), 0.0);
  sums.add(std::log(3.0));
  rest.add(std::log(1.0));
  rest.add(kLogZero);
  sums.add(rest);
  EXPECT_EQ(sums.count, 3u);
  EXPECT_NEAR(std::exp(sums.log_sum), 4.0, 1e-12);
  EXPECT_NEAR(sums.effective(), 16.0 / 10.0, 1e-12);
  EXPECT_NEAR(sums.largest_share(), 0.75, 1e-12);
  // Far beyond what a float, or a double, holds.
  WeightSums large;
  large.add(1000.0);
  large.add(1000.0);
  EXPECT_NEAR(large.log_sum, 1000.0 + std::log(2.0), 1e-9);
  EXPECT_NEAR(large.effective(), 2.0, 1e-9);
}

TEST(LogWeights, SpreadOfBatches) {
  // Means 1, 3 of equal sizes: mean 2, standard error 1.
  const std::vector<BatchSum> two = {{std::log(10.0), std::log(10.0)}, {std::log(30.0), std::log(10.0)}};
  EXPECT_NEAR(spread_of(two).relative_sd, 0.5, 1e-12);
  EXPECT_NEAR(spread_of(two).effective_batches, 1600.0 / 1000.0, 1e-12);
  // All hits in one batch: the interval is as wide as Student's t with one degree of freedom makes it.
  std::vector<BatchSum> one(64, {kLogZero, 0.0});
  one[5].log_hits = -3.0;
  EXPECT_NEAR(spread_of(one).effective_batches, 1.0, 1e-12);
  EXPECT_NEAR(spread_of(one).relative_sd, 1.0, 1e-12);
  // A single batch knows no spread.
  EXPECT_EQ(spread_of(std::vector<BatchSum>{{-3.0, 0.0}}).relative_sd, 1.0);
  EXPECT_NEAR(log_half_width(1.0, 1.0, 0.95), 12.7062, 1e-3);
  EXPECT_EQ(spread_of(std::vector<BatchSum>(3)).relative_sd, 0.0);
}

TEST(LogWeights, UpperBoundOfPlainBatches) {
  const std::vector<TiltedBatch> plain = {{.n = 100}, {.n = 156}};
  EXPECT_NEAR(std::exp(log_upper_bound(plain, 0.95)), std::log(40.0) / 256.0, 1e-12);
  EXPECT_EQ(log_upper_bound(std::vector<TiltedBatch>{{.n = 1}}, 0.95), 0.0);
}

// The part of the bound that is no matter of chance: whenever sum_b n_b g_b(E) <= log(1 / alpha), the bound
// is at least p(E). Random p, tilts and events on 40 tokens, with as many draws as that allows.
TEST(LogWeights, UpperBoundHoldsForTilts) {
  constexpr std::size_t n_tokens = 40;
  double tightest = 1e9;
  for (std::uint64_t trial = 0; trial < 300; ++trial) {
    std::uint32_t slot = 0;
    const auto uniform = [&] { return unit_double(uniform64({17, Stream::kInputs}, trial, slot++)); };
    const double strength = 3.0 * uniform();
    std::vector<double> p(n_tokens), g(n_tokens);
    double p_sum = 0.0, g_sum = 0.0;
    for (std::size_t i = 0; i < n_tokens; ++i) p_sum += p[i] = uniform();
    for (std::size_t i = 0; i < n_tokens; ++i) g_sum += g[i] = p[i] * std::exp(strength * uniform());
    double p_event = 0.0, g_event = 0.0;
    TiltedBatch tilted{.n = 0, .tilted = true};
    for (std::size_t k = 0; k < kMomentPowers.size(); ++k) {
      double moment = 0.0;
      for (std::size_t i = 0; i < n_tokens; ++i)
        moment += p[i] / p_sum * std::pow(p[i] / p_sum / (g[i] / g_sum), kMomentPowers[k]);
      tilted.log_moments[k] = std::log(moment);
    }
    const std::size_t n_event = 1 + static_cast<std::size_t>(3.0 * uniform());
    for (std::size_t i = 0; i < n_event; ++i) p_event += p[i] / p_sum, g_event += g[i] / g_sum;
    const double allowed = std::log(40.0);
    tilted.n = static_cast<std::uint64_t>(0.9 * allowed / g_event);
    const TiltedBatch plain{.n = static_cast<std::uint64_t>(0.1 * allowed / p_event)};
    const double bound = std::exp(log_upper_bound(std::vector<TiltedBatch>{plain, tilted}, 0.95));
    EXPECT_GE(bound, p_event);
    EXPECT_LE(bound, 1.0);
    tightest = std::min(tightest, bound / p_event);
  }
  EXPECT_LT(tightest, 3.0);  // and it says something
}

}  // namespace
}  // namespace deeptail
