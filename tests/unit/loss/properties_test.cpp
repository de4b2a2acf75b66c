// What the paper says about the loss, checked on grids.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "deeptail/loss.h"

namespace deeptail {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kAlphas[] = {0.0, 0.3,      0.5, 1 - 1e-9, 1.0, 1 + 1e-9, 1.4, 1.5,
                              1.6, 2 - 1e-9, 2.0, 2 + 1e-9, 3.0, 4.5,      8.0};
constexpr double kEpsilons[] = {0.0, 1e-30, 1e-12, 1e-6, 1e-3};
constexpr double kTruths[] = {1e-30, 1e-12, 3e-9, 1e-5, 0.02, 0.5};

template <class Body>
void for_each_setting(Body body) {
  for (const double alpha : kAlphas)
    for (const double epsilon : kEpsilons)
      for (const double q : kTruths) body(SpbParameters{.alpha = alpha, .gamma = 0.0, .epsilon = epsilon}, q);
}

std::string describe(const SpbParameters& s, double q) {
  return fmt::format("alpha {} epsilon {} q {}", s.alpha, s.epsilon, q);
}

TEST(SpbProperty, ZeroExactlyAtTheTruth) {
  for_each_setting([](const SpbParameters& s, double q) {
    EXPECT_EQ(spb_pointwise(s, q, q), 0.0) << describe(s, q);
    for (const double other : {std::nextafter(q, 0.0), std::nextafter(q, 1.0), 0.0, 0.5 * q, 2.0 * q, 1.0}) {
      if (other <= 1.0 && other != q) {
        EXPECT_GT(spb_pointwise(s, q, other), 0.0) << describe(s, q) << " p " << other;
      }
    }
  });
}

TEST(SpbProperty, GrowsWithTheLogErrorOnEachSide) {
  for_each_setting([](const SpbParameters& s, double q) {
    for (const double direction : {-1.0, 1.0}) {
      double before = 0.0;
      for (double log_error = 1e-6; log_error < 27.0; log_error *= 1.1) {
        const double p = q * std::exp(direction * log_error);
        if (p > 1.0) break;
        const double loss = spb_pointwise(s, q, p);
        ASSERT_GE(loss, before * (1 - 1e-14)) << describe(s, q) << " p " << p;
        // The loss saturates, and only rounding moves it, at p << eps and, for alpha > 2, at p >> q.
        const bool saturated = p < 1e3 * s.epsilon || (direction > 0 && s.alpha > 2.0 && log_error > 3.0);
        if (!saturated) {
          ASSERT_GT(loss, before) << describe(s, q) << " p " << p;
        }
        before = loss;
      }
    }
    EXPECT_GE(spb_pointwise(s, q, 0.0), spb_pointwise(s, q, 1e-3 * q)) << describe(s, q);
  });
}

// Strict propriety: when the truth itself is uncertain, its expectation is the estimate with the least
// expected loss.
TEST(SpbProperty, TheExpectedTruthMinimisesTheExpectedLoss) {
  for_each_setting([](const SpbParameters& s, double q) {
    for (const double spread : {0.1, 0.9})
      for (const double weight : {0.2, 0.5, 0.95}) {
        const double rare = q * (1.0 - spread), common = q;
        const double mean = weight * rare + (1.0 - weight) * common;
        const auto expected_loss = [&](double p) {
          return weight * spb_pointwise(s, rare, p) + (1.0 - weight) * spb_pointwise(s, common, p);
        };
        const double least = expected_loss(mean);
        // Steps large enough that the quadratic rise stands above rounding: 1e-12 of the loss at relative
        // error 1e-6.
        for (const double step : {1e-4, 1e-2, 0.3, 0.9})
          for (const double p : {mean * (1.0 - step), mean * (1.0 + step)})
            EXPECT_GT(expected_loss(p), least) << describe(s, q) << " p/mean " << p / mean;
      }
  });
}

TEST(SpbProperty, SpecialCases) {
  for (const double q : kTruths)
    for (const double m : {1e-6, 0.1, 0.999, 1.001, 1.9}) {
      const double p = q * m;
      EXPECT_DOUBLE_EQ(spb_pointwise({.alpha = 0.0}, q, p), 0.5 * squared_error(q, p));
      EXPECT_DOUBLE_EQ(spb_pointwise({.alpha = 0.0, .gamma = 0.0, .epsilon = 0.1}, q, p),
                       0.5 * squared_error(q, p));
      EXPECT_DOUBLE_EQ(spb_pointwise({.alpha = 2.0}, q, p), itakura_saito(q, p));
      if (m < 0.5) {
        EXPECT_NEAR(itakura_saito(q, p), q / p - std::log(q / p) - 1.0, 1e-14 * q / p);
      }
      EXPECT_NEAR(log_squared_error(q, p), std::pow(std::log(p) - std::log(q), 2), 1e-12);
    }
}

TEST(SpbProperty, ZeroEstimatesAreInfiniteOnlyWithoutShiftAndFromAlphaOne) {
  for_each_setting([](const SpbParameters& s, double q) {
    const bool infinite = s.epsilon == 0.0 && s.alpha >= 1.0;
    EXPECT_EQ(std::isinf(spb_pointwise(s, q, 0.0)), infinite) << describe(s, q);
    EXPECT_EQ(std::isinf(spb_weighted(s, q, 0.0)), infinite) << describe(s, q);
  });
  EXPECT_EQ(itakura_saito(0.1, 0.0), kInfinity);
  EXPECT_EQ(log_squared_error(0.1, 0.0), kInfinity);
  const double q[] = {0.1, 0.2}, p[] = {0.0, 0.2};
  EXPECT_EQ(spb_loss({.alpha = 1.5}, q, p), kInfinity);
  EXPECT_EQ(standard_losses(q, p).itakura_saito, kInfinity);
}

TEST(SpbProperty, WeightedUnshiftedLossDependsOnTheRelativeErrorAlone) {
  for (const double alpha : kAlphas)
    for (const double m : {1.5, 10.0})
      for (const double q : {1e-30, 1e-9, 1e-5, 1e-2}) {
        const SpbParameters s{.alpha = alpha};
        EXPECT_NEAR(spb_weighted(s, q, m * q) / i_fp(alpha, m), 1.0, 1e-13) << alpha << ' ' << q;
        EXPECT_NEAR(spb_weighted(s, q, q / m) / i_fn(alpha, m), 1.0, 1e-13) << alpha << ' ' << q;
        EXPECT_NEAR(spb_weighted({.alpha = alpha, .gamma = 1.0}, q, m * q) * q / i_fp(alpha, m), 1.0, 1e-13);
      }
}

TEST(SpbProperty, DatasetLossIsThePlainMean) {
  const double q[] = {1e-9, 1e-3}, p[] = {2e-9, 5e-4};
  const SpbParameters s{.alpha = 2.5, .gamma = 0.5, .epsilon = 1e-12};
  EXPECT_DOUBLE_EQ(spb_loss(s, q, p), 0.5 * (spb_weighted(s, q[0], p[0]) + spb_weighted(s, q[1], p[1])));
}

TEST(Asymmetry, MirrorIdentity) {
  for (const double alpha : {0.0, 0.5, 1.0, 1.25, 1.5, 2.0, 2.75, 3.0, 8.0})
    for (const double m : {1.0001, 1.5, 10.0, 1e6})
      EXPECT_NEAR(i_fn(alpha, m) / i_fp(3.0 - alpha, m), 1.0, 1e-14) << alpha << ' ' << m;
}

// Lemma Rmono and its mirror image.
TEST(Asymmetry, RatioIsOneAtThreeHalvesAndMonotoneInTheError) {
  for (const double alpha : {0.5, 1.0, 1.4, 1.5, 1.51, 1.6, 2.0, 2.5, 4.0, 8.0}) {
    double before = 1.0;
    for (double log_m = 0.01; log_m < 14.0; log_m *= 1.2) {
      const double ratio = asymmetry_ratio(alpha, std::exp(log_m));
      ASSERT_EQ(ratio > before, alpha > 1.5) << alpha << ' ' << log_m;
      ASSERT_EQ(ratio < before, alpha < 1.5) << alpha << ' ' << log_m;
      ASSERT_EQ(ratio == 1.0, alpha == 1.5);
      before = ratio;
    }
  }
}

TEST(Asymmetry, RatioGrowsWithAlpha) {
  for (const double m : {1.1, 2.0, 100.0})
    for (double alpha = 0.0; alpha < 8.0; alpha += 0.125)
      ASSERT_GT(asymmetry_ratio(alpha + 0.125, m), asymmetry_ratio(alpha, m)) << alpha << ' ' << m;
}

TEST(Asymmetry, RefusesImpossibleRequests) {
  EXPECT_THROW(alpha_for_ratio(1.0, 2.0), InputError);
  EXPECT_THROW(alpha_for_ratio(3.0, 1.0), InputError);
  EXPECT_THROW(alpha_for_ratio(kInfinity, 2.0), InputError);
  EXPECT_THROW(alpha_for_ratio(std::nan(""), 2.0), InputError);
  EXPECT_THROW(alpha_for_ratio(1e6, 1.0 + 1e-12), InputError);
  EXPECT_GE(asymmetry_ratio(alpha_for_ratio(3.0, 1.001), 1.001), 3.0);
}

TEST(SpbParametersTest, Validate) {
  EXPECT_NO_THROW((SpbParameters{.alpha = 0.0, .gamma = 2.0, .epsilon = 1e-9}.validate()));
  EXPECT_THROW((SpbParameters{.alpha = -1.0}.validate()), InputError);
  EXPECT_THROW((SpbParameters{.alpha = 2.0, .gamma = -0.1}.validate()), InputError);
  EXPECT_THROW((SpbParameters{.alpha = 2.0, .gamma = 0.0, .epsilon = std::nan("")}.validate()), InputError);
}

}  // namespace
}  // namespace deeptail
