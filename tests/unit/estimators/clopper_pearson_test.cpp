#include <gtest/gtest.h>

#include <cmath>

#include "deeptail/estimators.h"

namespace deeptail {
namespace {

// Pr[X <= k] of n trials with chance p, term by term. Long doubles reach exp(-11000), the first term at 10000
// hits.
double binomial_cdf(double k, double n, double p) {
  long double term = std::exp(static_cast<long double>(n) * std::log1p(-static_cast<long double>(p))),
              sum = term;
  for (double i = 0; i < k; ++i) sum += term *= (n - i) / (i + 1) * p / (1.0L - p);
  return static_cast<double>(sum);
}

// The definition: at the ends of the interval, seeing as many hits or more (as few or fewer) has half the
// risk.
TEST(ClopperPearson, EndsHaveTheStatedTails) {
  for (const std::uint64_t n : {1ull, 10ull, 1000ull, 1ull << 16, 1ull << 28, 1ull << 32})
    for (const std::uint64_t hits : {1ull, 2ull, 7ull, 50ull, 10000ull}) {
      if (hits >= n) continue;
      for (const double confidence : {0.9, 0.95, 0.999}) {
        const double tail = 0.5 * (1.0 - confidence), k = static_cast<double>(hits),
                     trials = static_cast<double>(n);
        const Interval interval = clopper_pearson(hits, n, confidence);
        EXPECT_LT(interval.low, k / trials);
        EXPECT_GT(interval.high, k / trials);
        EXPECT_NEAR(1.0 - binomial_cdf(k - 1, trials, interval.low), tail, 1e-6 * tail);
        EXPECT_NEAR(binomial_cdf(k, trials, interval.high), tail, 1e-6 * tail);
      }
    }
}

TEST(ClopperPearson, ZeroHitsKeepAnUpperBound) {
  const Interval none = clopper_pearson(0, 1 << 20);
  EXPECT_EQ(none.low, 0.0);
  EXPECT_NEAR(std::pow(1.0 - none.high, 1 << 20), 0.025, 1e-9);
  EXPECT_NEAR(none.high * (1 << 20), -std::log(0.025), 1e-5);
  const Interval all = clopper_pearson(100, 100);
  EXPECT_EQ(all.high, 1.0);
  EXPECT_NEAR(std::pow(all.low, 100), 0.025, 1e-12);
  EXPECT_EQ(clopper_pearson(0, 0).high, 1.0);
}

// Coverage at the worst of many probabilities, summed exactly over all outcomes: never below the confidence.
TEST(ClopperPearson, CoversWithAtLeastTheConfidence) {
  const std::uint64_t n = 40;
  for (double p = 0.005; p < 1.0; p += 0.005) {
    double covered = 0.0;
    for (std::uint64_t k = 0; k <= n; ++k) {
      const Interval interval = clopper_pearson(k, n);
      if (interval.low <= p && p <= interval.high)
        covered += binomial_cdf(static_cast<double>(k), n, p) -
                   (k == 0 ? 0.0 : binomial_cdf(static_cast<double>(k) - 1, n, p));
    }
    EXPECT_GE(covered, 0.95 - 1e-12) << p;
  }
}

}  // namespace
}  // namespace deeptail
