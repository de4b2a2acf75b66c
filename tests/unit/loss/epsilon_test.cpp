// The theorems' bounds on the shift, tried out on the whole box they speak about.
#include <gtest/gtest.h>

#include <cmath>

#include "deeptail/loss.h"

namespace deeptail {
namespace {

constexpr double kTruthFactors[] = {1.0, 1.7, 10.0, 1e3};

template <class Body>
void for_each_query(Body body) {
  for (const double alpha : {0.5, 1.0, 1.5, 1.6, 2.0, 2.5, 4.0, 8.0})
    for (const double qmin : {1e-12, 1e-9, 1e-6})
      for (const double mmax : {10.0, 100.0})
        for (const double m0 : {1.05, 2.0, 10.0})
          for (const double eta : {0.01, 0.05, 0.3})
            body(EpsilonQuery{.alpha = alpha, .qmin = qmin, .mmax = mmax, .m0 = m0, .eta = eta});
}

template <class Body>
void for_each_error(const EpsilonQuery& query, double smallest, Body body) {
  for (const double factor : kTruthFactors)
    for (int step = 0; step <= 8; ++step)
      body(query.qmin * factor, smallest * std::pow(query.mmax / smallest, step / 8.0));
}

TEST(EpsilonBounds, Theorem1KeepsTheScaleDistortionWithinEta) {
  for_each_query([](const EpsilonQuery& query) {
    const double epsilon = epsilon_bounds(query).scale;
    EXPECT_NEAR(guaranteed_distortion(query, epsilon), query.eta, 1e-12);
    const SpbParameters s{.alpha = query.alpha, .gamma = 0.0, .epsilon = epsilon};
    for_each_error(query, 1.001, [&](double q, double m) {
      const double fp = 1.0 - spb_weighted(s, q, m * q) / i_fp(query.alpha, m);
      const double fn = 1.0 - spb_weighted(s, q, q / m) / i_fn(query.alpha, m);
      ASSERT_GE(fp, -1e-12);
      ASSERT_LE(fp, query.eta * (1 + 1e-12));
      ASSERT_GE(fn, -1e-12);
      ASSERT_LE(fn, query.eta * (1 + 1e-12));
    });
  });
}

TEST(EpsilonBounds, Theorem2KeepsUnderestimatesWorse) {
  for_each_query([](const EpsilonQuery& query) {
    const auto bounds = epsilon_bounds(query);
    ASSERT_EQ(bounds.asymmetry.has_value(), query.alpha > 1.5);
    if (!bounds.asymmetry) return;
    const SpbParameters s{.alpha = query.alpha, .gamma = 0.0, .epsilon = *bounds.asymmetry * (1 - 1e-9)};
    for_each_error(query, query.m0, [&](double q, double m) {
      ASSERT_GT(spb_pointwise(s, q, q / m), spb_pointwise(s, q, m * q)) << query.alpha << ' ' << m;
    });
  });
}

TEST(EpsilonBounds, CorollaryIsTheSmallerOfBothAndSaysWhichBinds) {
  bool scale_bound_once = false, asymmetry_bound_once = false;
  for_each_query([&](const EpsilonQuery& query) {
    const auto bounds = epsilon_bounds(query);
    ASSERT_EQ(bounds.corollary.has_value(), bounds.asymmetry.has_value());
    if (!bounds.corollary) return;
    ASSERT_EQ(*bounds.corollary, std::min(bounds.scale, *bounds.asymmetry));
    const bool by_scale = *bounds.corollary == bounds.scale;
    ASSERT_EQ(bounds.binds, by_scale ? EpsilonBound::scale : EpsilonBound::asymmetry);
    (by_scale ? scale_bound_once : asymmetry_bound_once) = true;
  });
  EXPECT_TRUE(scale_bound_once);
  EXPECT_TRUE(asymmetry_bound_once);
}

TEST(EpsilonBounds, RatioVersionKeepsTheWantedRatio) {
  for_each_query([](EpsilonQuery query) {
    for (const double wanted : {1.01, 1.5, 3.0}) {
      query.ratio = wanted;
      const auto bounds = epsilon_bounds(query);
      ASSERT_EQ(bounds.ratio.has_value(), query.alpha > 1.5 && bounds.ratio_at_m0 > wanted);
      if (!bounds.ratio) continue;
      EXPECT_NEAR(guaranteed_ratio(query, *bounds.ratio), wanted, 1e-9 * wanted);
      const SpbParameters s{.alpha = query.alpha, .gamma = 0.0, .epsilon = *bounds.ratio};
      for_each_error(query, query.m0, [&](double q, double m) {
        ASSERT_GE(spb_pointwise(s, q, q / m), wanted * (1 - 1e-9) * spb_pointwise(s, q, m * q));
      });
      if (*bounds.ratio < *bounds.corollary) {
        EXPECT_EQ(bounds.binds, EpsilonBound::ratio);
      }
    }
  });
}

TEST(EpsilonBounds, GuaranteedRatioHoldsForAnyShift) {
  for_each_query([](const EpsilonQuery& query) {
    for (const double shift : {0.0, 0.01, 0.3, 5.0}) {
      const double epsilon = shift * query.qmin / query.mmax, promised = guaranteed_ratio(query, epsilon);
      const SpbParameters s{.alpha = query.alpha, .gamma = 0.0, .epsilon = epsilon};
      for_each_error(query, query.m0, [&](double q, double m) {
        ASSERT_GE(spb_pointwise(s, q, q / m), promised * (1 - 1e-12) * spb_pointwise(s, q, m * q));
      });
    }
  });
}

// By hand: alpha = 2, so R_2(2) = (1 - ln 2) / (ln 2 - 1/2) and the bounds are square roots.
TEST(EpsilonBounds, WorkedExample) {
  const EpsilonQuery query{.alpha = 2.0, .qmin = 1e-9, .mmax = 100.0, .m0 = 2.0, .eta = 0.05, .ratio = 1.2};
  const auto bounds = epsilon_bounds(query);
  const double r = (1.0 - std::log(2.0)) / (std::log(2.0) - 0.5);
  EXPECT_NEAR(bounds.ratio_at_m0, r, 1e-14);
  EXPECT_NEAR(bounds.scale / (1e-11 * (1.0 / std::sqrt(0.95) - 1.0)), 1.0, 1e-13);
  EXPECT_NEAR(*bounds.asymmetry / (1e-11 * (std::sqrt(r) - 1.0)), 1.0, 1e-13);
  EXPECT_NEAR(*bounds.ratio / (1e-11 * (std::sqrt(r / 1.2) - 1.0)), 1.0, 1e-13);
  EXPECT_EQ(*bounds.corollary, bounds.scale);
  EXPECT_DOUBLE_EQ(bounds.heuristic, 1e-13);
  EXPECT_EQ(name(bounds.binds), "theorem1");
}

TEST(EpsilonChoiceTest, ProfilesSayWhichRuleTheyUsed) {
  ASSERT_EQ(profiles().size(), 4u);
  for (const Profile& profile : profiles()) {
    const EpsilonQuery query{.alpha = profile.alpha, .qmin = 1e-9, .mmax = 100.0, .m0 = 2.0, .eta = 0.05};
    const auto choice = choose_epsilon(query);
    EXPECT_EQ(choice.rule, profile.alpha > 1.5 ? "corollary" : "heuristic") << profile.name;
    EXPECT_GT(choice.epsilon, 0.0);
    EXPECT_LT(guaranteed_distortion(query, choice.epsilon), 0.05);
  }
  EXPECT_EQ(find_profile("audit").gamma, 2.0);
  EXPECT_THROW(find_profile("adit"), InputError);
}

TEST(EpsilonBounds, NoDistortionAtAlphaZero) {
  const EpsilonQuery query{.alpha = 0.0};
  EXPECT_TRUE(std::isinf(epsilon_bounds(query).scale));
  EXPECT_EQ(choose_epsilon(query).rule, "heuristic");
}

TEST(EpsilonBounds, RefusesNonsense) {
  const EpsilonQuery good;
  const auto refuse = [&](auto change) {
    EpsilonQuery query = good;
    change(query);
    EXPECT_THROW(epsilon_bounds(query), InputError);
  };
  EXPECT_NO_THROW(epsilon_bounds(good));
  refuse([](EpsilonQuery& e) { e.alpha = -1; });
  refuse([](EpsilonQuery& e) { e.qmin = 0; });
  refuse([](EpsilonQuery& e) { e.qmin = 1; });
  refuse([](EpsilonQuery& e) { e.mmax = 1; });
  refuse([](EpsilonQuery& e) { e.m0 = 1; });
  refuse([](EpsilonQuery& e) { e.m0 = 101; });
  refuse([](EpsilonQuery& e) { e.eta = 1; });
  refuse([](EpsilonQuery& e) { e.ratio = 0.5; });
  refuse([](EpsilonQuery& e) { e.qmin = std::nan(""); });
}

}  // namespace
}  // namespace deeptail
