// Forecasts against tails that are known: payoffs drawn from a Gumbel law, and sums of independent digits.
#include "deeptail/forecast.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/random.h"
#include "deeptail/inputs.h"
#include "sizes.h"

namespace deeptail {
namespace {

constexpr double kNever = -std::numeric_limits<double>::infinity();

// psi = -log(-log p) is location + scale times an exponential number: log survival is a straight line.
std::vector<double> exponential_tails(std::size_t m, std::uint64_t seed, double location = -3.0,
                                      double scale = 0.2) {
  std::vector<double> log_p;
  for (std::size_t i = 0; i < m; ++i) {
    const double u = unit_double(uniform64({seed, Stream::kInputs}, i, 0));
    log_p.push_back(-std::exp(-(location - scale * std::log1p(-u))));
  }
  return log_p;
}
double true_log_p(double n, double location = -3.0, double scale = 0.2) {
  return -std::exp(-(location + scale * std::log(n)));
}

TEST(Forecast, FitIsTheLineThroughExactQuantiles) {
  const std::size_t m = 1000;
  std::vector<double> log_p;
  for (std::size_t j = 1; j <= m; ++j)
    log_p.push_back(true_log_p(static_cast<double>(m) / static_cast<double>(j)));
  const TailFit fit = fit_tail(log_p, 50);
  EXPECT_NEAR(fit.slope, -5.0, 1e-9);
  EXPECT_EQ(fit.top, 50u);
  for (const double n : {1e2, 1e4, 1e9}) EXPECT_NEAR(fit.log_p(n), true_log_p(n), 1e-9);
}

// The tail is what the fit takes it for. Least squares on log(j / m) is known to put the worst a little too high;
// the bootstrap's intervals hold the truth in 80 % or more of 100 forecasts.
TEST(Forecast, BootstrapCoversAnExponentialTail) {
  const std::vector<double> queries = {1e4};
  const std::size_t runs = sized<std::size_t>(100, 20);
  double error = 0.0;
  std::size_t covered = 0;
  for (std::size_t r = 0; r < runs; ++r) {
    const WorstOf worst =
        forecast_worst(exponential_tails(1000, r), queries, {.resamples = 60, .seed = r})[0];
    const double truth = true_log_p(1e4);
    EXPECT_LE(worst.log_low, worst.log_high);
    covered += worst.log_low <= truth && truth <= worst.log_high;
    error += (std::log(-worst.log_p) - std::log(-truth)) / static_cast<double>(runs);
  }
  EXPECT_LT(error, 0.0);
  EXPECT_GT(error, -0.2);
  EXPECT_GE(covered, runs * 8 / 10);
}

TEST(Forecast, WhatCannotBeFittedIsRefused) {
  const std::vector<double> queries = {10.0};
  EXPECT_THROW(forecast_worst(std::vector<double>{-1.0, -2.0}, queries, {}), InputError);
  EXPECT_THROW(forecast_worst(std::vector<double>(100, -1.0), queries, {}), InputError);
  EXPECT_THROW(forecast_worst(std::vector<double>(100, kNever), queries, {}), InputError);
  const std::vector<double> fine = exponential_tails(100, 1), bad = {0.0}, none = {NAN};
  EXPECT_THROW(forecast_worst(fine, bad, {}), InputError);
  EXPECT_THROW(forecast_worst(fine, none, {}), InputError);
  EXPECT_THROW(forecast_worst(fine, queries, {.top = 2}), InputError);
  EXPECT_THROW(forecast_worst(fine, queries, {.resamples = 0}), InputError);
  // Zeros count as prompts, and one that is certain is no obstacle.
  std::vector<double> mixed = exponential_tails(100, 1);
  mixed.insert(mixed.end(), 100, kNever);
  mixed.push_back(0.0);
  EXPECT_TRUE(std::isfinite(forecast_worst(mixed, queries, {})[0].log_p));
}

TEST(Forecast, PoolsHaveExactQuantiles) {
  std::vector<double> log_p;
  for (int i = 1; i <= 100; ++i) log_p.push_back(-i);
  const std::vector<double> queries = {1.0, 2.0, 10.0, 100.0, 1e6};
  const std::vector<WorstOf> worst = worst_of_pool(log_p, queries);
  EXPECT_EQ(worst[0].log_p, -100.0);
  EXPECT_EQ(worst[1].log_p, -50.0);
  EXPECT_EQ(worst[2].log_p, -10.0);
  EXPECT_EQ(worst[3].log_p, -1.0);
  EXPECT_EQ(worst[4].log_p, -1.0);
  EXPECT_THROW(worst_of_pool({}, queries), InputError);
}

// Prompts of 12 digits; p = exp((sum - 108.5) / 4): every share is a tail of a sum, known exactly.
constexpr std::size_t kDigits = 12;
TokenTables digits() {
  Distribution dist;
  dist.name = "digits";
  dist.d_vocab = 10;
  dist.tables = {TokenTable("digit", {0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, std::vector<double>(10, 0.1), "digits")};
  dist.positions.assign(kDigits, 0);
  return TokenTables(dist);
}
void digit_chances(const Inputs& inputs, std::span<double> out) {
  for (std::size_t i = 0; i < out.size(); ++i) {
    double sum = 0.0;
    for (const TokenId token : inputs.sequence(i)) sum += token;
    out[i] = (sum - 108.5) / 4.0;
  }
}
double log_share_of(double log_p) {
  std::vector<double> sum = {1.0};
  for (std::size_t i = 0; i < kDigits; ++i) {
    std::vector<double> next(sum.size() + 9, 0.0);
    for (std::size_t s = 0; s < sum.size(); ++s)
      for (std::size_t v = 0; v < 10; ++v) next[s + v] += 0.1 * sum[s];
    sum = std::move(next);
  }
  double tail = 0.0;
  for (std::size_t s = sum.size(); s-- > 0 && (static_cast<double>(s) - 108.5) / 4.0 >= log_p - 1e-9;)
    tail += sum[s];
  return std::log(tail);
}

TEST(ChanceCurve, SharesOfDigitsAreThoseOfTheirSum) {
  const TokenTables law = digits();
  ThreadPool pool(2);
  std::size_t held = 0, levels = 0;
  for (std::uint64_t seed = 1; seed <= sized<std::uint64_t>(10, 2); ++seed) {
    const ChanceCurve curve =
        chance_curve(law, digit_chances, 1e9, {.budget = sized(1e5, 3e4), .seed = seed}, pool);
    EXPECT_FALSE(curve.ended);
    ASSERT_GT(curve.levels.size(), 8u);
    for (std::size_t k = 0; k < curve.levels.size(); ++k) {
      const double truth = log_share_of(curve.levels[k]);
      EXPECT_NEAR(curve.log_share[k], truth, 1.5);
      held += curve.log_low[k] <= truth && truth <= curve.log_high[k];
      ++levels;
    }
    EXPECT_LT(curve.log_share.back(), -std::log(1e9) + 1.0);
  }
  EXPECT_GT(held, levels * 85 / 100) << levels;
}

// The chance that the largest of n prompts lies in its interval, exactly, on average over runs of splitting.
TEST(ChanceCurve, IntervalsHoldTheLargestOfNPrompts) {
  const TokenTables law = digits();
  ThreadPool pool(2);
  const std::vector<double> queries = {1e3, 1e4, 1e6};
  const auto runs = sized<std::uint64_t>(6, 1);
  double held = 0.0;
  for (std::uint64_t seed = 1; seed <= runs; ++seed) {
    const ChanceCurve curve = chance_curve(law, digit_chances, 1e6, {.budget = 2e4, .seed = seed}, pool);
    for (const WorstOf& w : worst_by_curve(curve, queries)) {
      EXPECT_LE(w.log_worst_low, w.log_low);
      EXPECT_GE(w.log_worst_high, w.log_high);
      // Chances are a quarter apart: the largest is at most x unless one is beyond.
      const double above = w.queries * std::exp(log_share_of(w.log_worst_high + 1e-6)),
                   from = w.queries * std::exp(log_share_of(w.log_worst_low));
      held += (std::exp(-above) - std::exp(-from)) / static_cast<double>(runs * queries.size());
    }
  }
  if (runs > 1) {
    EXPECT_GE(held, 0.93);
    EXPECT_LE(held, 0.995);
  }
}

TEST(ChanceCurve, IsTheSameForAnyThreadsAndEndsWhereNothingIsBetter) {
  const TokenTables law = digits();
  std::vector<double> first;
  for (const std::size_t threads : {1, 2, 7}) {
    ThreadPool pool(threads);
    const ChanceCurve curve = chance_curve(law, digit_chances, 1e4, {.budget = 2e4}, pool);
    if (first.empty()) first = curve.log_share;
    EXPECT_EQ(curve.log_share, first);
  }
  // Only three values: 1, 1e-3 of them at least 0.1, and no more.
  const auto few = [](const Inputs& inputs, std::span<double> out) {
    for (std::size_t i = 0; i < out.size(); ++i) {
      const auto row = inputs.sequence(i);
      out[i] = row[0] > 0 ? -9.0 : row[1] > 0 ? -5.0 : -2.0;
    }
  };
  ThreadPool pool(1);
  const ChanceCurve curve = chance_curve(law, few, 1e6, {.budget = 2e4}, pool);
  EXPECT_TRUE(curve.ended);
  EXPECT_EQ(curve.levels.back(), -2.0);
  const std::vector<double> queries = {50.0, 1e6};
  const std::vector<WorstOf> worst = worst_by_curve(curve, queries);
  EXPECT_EQ(worst[1].log_p, -2.0);
  EXPECT_NEAR(curve.log_share.back(), std::log(1e-2), 0.5);
}

TEST(ChanceCurve, QuantilesLieBetweenLevels) {
  ChanceCurve curve{.levels = {-10.0, -8.0, -6.0},
                    .log_share = {std::log(1e-1), std::log(1e-2), std::log(1e-3)},
                    .log_low = {std::log(0.5e-1), std::log(0.5e-2), std::log(0.5e-3)},
                    .log_high = {std::log(2e-1), std::log(2e-2), std::log(2e-3)}};
  const std::vector<double> queries = {2.0, 100.0, 316.227766, 1e9};
  const std::vector<WorstOf> worst = worst_by_curve(curve, queries);
  EXPECT_EQ(worst[0].log_p, kNever);
  EXPECT_NEAR(worst[1].log_p, -8.0, 1e-9);
  EXPECT_LT(worst[1].log_low, -8.0);
  EXPECT_GT(worst[1].log_high, -8.0);
  EXPECT_NEAR(worst[2].log_p, -7.0, 1e-6);
  EXPECT_EQ(worst[3].log_p, -6.0);
}

}  // namespace
}  // namespace deeptail
