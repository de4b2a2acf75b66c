#include <gtest/gtest.h>

#include <cmath>

#include "deeptail/loss.h"

namespace deeptail {
namespace {

struct Sample {
  std::vector<double> q, p;
};

// Truths over four decades; deterministic scatter of the estimates around (q / a)^(1/c).
Sample power_law(double a, double c, double scatter, std::size_t n = 40) {
  Sample s;
  for (std::size_t i = 0; i < n; ++i) {
    const double q = std::pow(10.0, -9.0 + 4.0 * static_cast<double>(i) / static_cast<double>(n));
    s.q.push_back(q);
    s.p.push_back(std::pow(q / a, 1.0 / c) * std::exp(scatter * std::sin(7.0 * static_cast<double>(i))));
  }
  return s;
}

TEST(Calibration, RecoversAPowerLaw) {
  ThreadPool pool(1);
  const Sample s = power_law(3.0, 0.8, 0.0);
  const Calibration fit = calibrate(s.q, s.p, pool);
  EXPECT_NEAR(fit.a, 3.0, 1e-3);
  EXPECT_NEAR(fit.c, 0.8, 1e-4);
  EXPECT_EQ(fit.b, 0.0);
  EXPECT_LT(fit.loss_leave_one_out, 1e-7);
  EXPECT_GT(fit.loss_uncalibrated, 1.0);
  EXPECT_TRUE(Calibration::uses_truth);
}

// A fit is a local minimum of the mean Itakura-Saito loss, and fitting cannot hurt on the pairs it was fitted
// to.
TEST(Calibration, FitIsAMinimum) {
  ThreadPool pool(2);
  Sample s = power_law(0.5, 1.2, 1.5);
  s.p[3] = s.p[11] = 0.0;
  const Calibration fit = calibrate(s.q, s.p, pool);
  const auto loss = [&](double a, double c, double b) {
    double sum = 0.0;
    for (std::size_t i = 0; i < s.q.size(); ++i) sum += itakura_saito(s.q[i], a * std::pow(s.p[i], c) + b);
    return sum / static_cast<double>(s.q.size());
  };
  EXPECT_NEAR(loss(fit.a, fit.c, fit.b), fit.loss_fitted, 1e-9);
  for (const double f : {0.97, 1.03}) {
    EXPECT_GT(loss(fit.a * f, fit.c, fit.b), fit.loss_fitted);
    EXPECT_GT(loss(fit.a, fit.c * f, fit.b), fit.loss_fitted);
    EXPECT_GT(loss(fit.a, fit.c, fit.b * f), fit.loss_fitted);
  }
  EXPECT_TRUE(std::isinf(fit.loss_uncalibrated));
  EXPECT_GT(fit.b, 0.0);
  EXPECT_GT(fit.loss_leave_one_out, fit.loss_fitted);
}

// With nothing but zeros the best constant is the mean truth; left out, it is the mean of the others.
TEST(Calibration, AllZerosGiveTheMeanTruth) {
  ThreadPool pool(1);
  const std::vector<double> q{1e-6, 2e-6, 3e-6, 4e-6, 5e-6}, p(5, 0.0);
  const Calibration fit = calibrate(q, p, pool);
  EXPECT_NEAR(fit.b / 3e-6, 1.0, 1e-5);
  EXPECT_NEAR(fit.leave_one_out[0] / 3.5e-6, 1.0, 1e-5);
}

// Without its only zero the fit has no use for b, and nothing else keeps the left-out estimate off zero.
TEST(Calibration, TheOnlyZeroHasNoFiniteLeaveOneOutLoss) {
  ThreadPool pool(1);
  Sample s = power_law(1.0, 1.0, 0.5);
  s.p[0] = 0.0;
  const Calibration fit = calibrate(s.q, s.p, pool);
  EXPECT_TRUE(std::isfinite(fit.loss_fitted));
  EXPECT_EQ(fit.leave_one_out[0], 0.0);
  EXPECT_TRUE(std::isinf(fit.loss_leave_one_out));
}

TEST(Calibration, SameAnswerForAnyNumberOfThreads) {
  const Sample s = power_law(2.0, 0.9, 1.0);
  ThreadPool one(1);
  const Calibration expected = calibrate(s.q, s.p, one);
  for (const std::size_t threads : {2u, 7u}) {
    ThreadPool pool(threads);
    const Calibration found = calibrate(s.q, s.p, pool);
    EXPECT_EQ(found.leave_one_out, expected.leave_one_out);
    EXPECT_EQ(found.loss_leave_one_out, expected.loss_leave_one_out);
  }
}

TEST(Calibration, NeedsFivePairs) {
  ThreadPool pool(1);
  const std::vector<double> q(4, 0.1), p(4, 0.2);
  EXPECT_THROW(calibrate(q, p, pool), InputError);
}

}  // namespace
}  // namespace deeptail
