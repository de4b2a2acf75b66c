// The numbers themselves, against 150-digit arithmetic.
#include <algorithm>

#include "deeptail/loss.h"
#include "fixture.h"

namespace deeptail {
namespace {

using test::read_table;
using test::relative_error;

constexpr double kTolerance = 1e-12;  // what the header promises

TEST(SpbAccuracy, PointwiseAndWeightedAgreeWithHighPrecision) {
  const auto rows = read_table("pointwise.csv");
  ASSERT_GE(rows.size(), 5000u);
  double worst = 0.0;
  for (const auto& row : rows) {
    const SpbParameters s{.alpha = row[0], .gamma = row[2], .epsilon = row[1]};
    const double q = row[3], p = row[4];
    const double pointwise = relative_error(spb_pointwise(s, q, p), row[5]);
    const double weighted = relative_error(spb_weighted(s, q, p), row[6]);
    worst = std::max({worst, pointwise, weighted});
    // Negated, so that a NaN fails.
    if (!(pointwise <= kTolerance) || !(weighted <= kTolerance))
      ADD_FAILURE() << "alpha " << s.alpha << " epsilon " << s.epsilon << " gamma " << s.gamma << " q " << q
                    << " p " << p << ": " << pointwise << ' ' << weighted;
  }
  RecordProperty("worst_relative_error", testing::PrintToString(worst));
}

TEST(SpbAccuracy, BatchEqualsPointwise) {
  std::vector<double> q, p;
  for (const auto& row : read_table("pointwise.csv")) q.push_back(row[3]), p.push_back(row[4]);
  std::vector<double> out(q.size());
  for (const double alpha : {0.0, 1.0, 1.5, 2.0, 3.25}) {
    const SpbParameters s{.alpha = alpha, .gamma = 0.5, .epsilon = 1e-9};
    spb_pointwise(s, q, p, out);
    for (std::size_t i = 0; i < q.size(); ++i) ASSERT_EQ(out[i], spb_pointwise(s, q[i], p[i]));
    spb_weighted(s, q, p, out);
    for (std::size_t i = 0; i < q.size(); ++i) ASSERT_EQ(out[i], spb_weighted(s, q[i], p[i]));
  }
}

TEST(SpbAccuracy, AsymmetryIntegralsAgreeWithHighPrecision) {
  const auto rows = read_table("asymmetry.csv");
  ASSERT_FALSE(rows.empty());
  for (const auto& row : rows) {
    EXPECT_LE(relative_error(i_fp(row[0], row[1]), row[2]), kTolerance) << row[0] << ' ' << row[1];
    EXPECT_LE(relative_error(i_fn(row[0], row[1]), row[3]), kTolerance) << row[0] << ' ' << row[1];
  }
}

TEST(SpbAccuracy, AlphaForRatioIsTheConservativeEnd) {
  const auto rows = read_table("alpha.csv");
  ASSERT_FALSE(rows.empty());
  for (const auto& row : rows) {
    const double alpha = alpha_for_ratio(row[0], row[1]);
    EXPECT_LE(relative_error(alpha, row[2]), kTolerance) << row[0] << ' ' << row[1];
    EXPECT_GE(asymmetry_ratio(alpha, row[1]), row[0]);
  }
}

// Far outside the fixture's grid a loss may overflow or underflow, but it stays a number.
TEST(SpbAccuracy, ExtremesAreNeverNan) {
  const double tiny = 5e-324, small = 1e-300, one = std::nextafter(1.0, 0.0);
  for (const double alpha : {0.0, 1e-300, 0.5, 1.0, 1.5, 2.0, 8.0, 100.0, 1e6})
    for (const double epsilon : {0.0, tiny, small, 1e-30, 1e-3, 1.0, 1e300})
      for (const double q : {tiny, small, 1e-160, 1e-30, 0.5, one})
        for (const double p : {0.0, tiny, small, 1e-160, 1e-30, 0.5, one, 1.0})
          for (const double gamma : {0.0, 2.0}) {
            const SpbParameters s{.alpha = alpha, .gamma = gamma, .epsilon = epsilon};
            EXPECT_GE(spb_pointwise(s, q, p), 0.0) << alpha << ' ' << epsilon << ' ' << q << ' ' << p;
            EXPECT_GE(spb_weighted(s, q, p), 0.0) << alpha << ' ' << epsilon << ' ' << q << ' ' << p;
          }
}

}  // namespace
}  // namespace deeptail
