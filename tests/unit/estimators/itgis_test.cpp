#include "deeptail/itgis.h"

#include <gtest/gtest.h>

#include <numeric>

#include "estimators/token_gradients.h"
#include "model/cpu/packed_weights.h"
#include "sizes.h"
#include "unit/estimators/counting_model.h"
#include "unit/estimators/enumerated.h"

namespace deeptail {
namespace {

// What the gather saves: the product of the gradient with all of W_E, as for one-hot inputs, has the same
// numbers.
TEST(TokenGradients, EqualTheOneHotProduct) {
  const CountingModel toy(3, {0.4, 0.3, 0.2, 0.1}, 6);
  const TokenGradients gradients_of(toy.model(), toy.dist());
  EXPECT_EQ(gradients_of.positions(), (std::vector<std::size_t>{0, 1, 2}));  // not the constant one
  const std::vector<TokenId> tokens = {3, 0, 2, CountingModel::kEnd};
  ThreadPool pool(1);
  const auto exact =
      GradientEngine(toy.model()).run({tokens, 4}, toy.target(), Objective::kTargetLogit, pool);
  const std::size_t d = toy.model().config().d_model;
  for (std::size_t i = 0; i < 3; ++i) {
    std::vector<float> found(16);
    gradients_of.scores(gradients_of.table_of(i), 1, {exact.gradients.data() + i * d, d}, {found.data(), 16});
    const TokenTable& table = toy.dist().table(i);
    for (std::size_t t = 0; t < CountingModel::kVocab; ++t) {  // d logit / d onehot[t]
      double product = 0.0;
      for (std::size_t k = 0; k < d; ++k)
        product += static_cast<double>(exact.gradients[i * d + k]) *
                   static_cast<double>(toy.model().packed().w_e[t * d + k]);
      const auto id = static_cast<TokenId>(t);
      if (t >= table.size()) continue;
      EXPECT_NEAR(found[place_of(table, id)], product, 1e-5 + 1e-5 * std::abs(product));
    }
  }
}

// Mean over seeds against the exact probability: within 4 standard errors (false alarm 6e-5).
TEST(Itgis, IsUnbiased) {
  const CountingModel toy(6, {0.55, 0.3, 0.1, 0.05}, 12);
  const double truth = toy.truth();
  ThreadPool pool(1);
  const auto n_seeds = static_cast<double>(sized(200, 12));
  for (const double temperature : {20.0, 60.0}) {
    double sum = 0.0, squares = 0.0;
    for (std::uint64_t seed = 1; seed <= static_cast<std::uint64_t>(n_seeds); ++seed) {
      const Estimate e =
          itgis(toy.model(), toy.dist(), toy.target(),
                {.samples = 1024, .batch = 64, .temperature = temperature, .seed = seed}, pool);
      const double ratio = std::exp(e.log_p) / truth;
      sum += ratio;
      squares += ratio * ratio;
    }
    const double mean = sum / n_seeds, se = std::sqrt((squares / n_seeds - mean * mean) / (n_seeds - 1.0));
    EXPECT_NEAR(mean, 1.0, 4.0 * se) << "temperature " << temperature;
    EXPECT_LT(se, 0.1 * std::sqrt(200.0 / n_seeds))
        << "temperature " << temperature;  // the test says something
  }
}

// 95% intervals of 100 seeds: fewer than 86 covering has a chance below 1e-3 when each covers with 95%.
TEST(Itgis, IntervalsCover) {
  const CountingModel toy(6, {0.55, 0.3, 0.1, 0.05}, 12);
  ThreadPool pool(1);
  const int n = static_cast<int>(sized(100, 10));
  int covered = 0;
  for (int seed = 1; seed <= n; ++seed) {
    const Estimate e = itgis(
        toy.model(), toy.dist(), toy.target(),
        {.samples = 2048, .batch = 64, .temperature = 40.0, .seed = static_cast<std::uint64_t>(seed)}, pool);
    covered += e.log_low <= std::log(toy.truth()) && std::log(toy.truth()) <= e.log_high;
  }
  EXPECT_GE(covered, sized(86, 7));  // fewer than 7 of 10: below 1e-3 as well
}

// One batch, or few that agree by chance, are no certainty.
TEST(Itgis, FewBatchesGiveWideIntervals) {
  const CountingModel toy(6, {0.55, 0.3, 0.1, 0.05}, 6);
  ThreadPool pool(1);
  for (const std::uint64_t samples : {256, 511})
    for (std::uint64_t seed = 1; seed <= sized(60, 10); ++seed) {
      const Estimate e = itgis(toy.model(), toy.dist(), toy.target(),
                               {.samples = samples, .temperature = 1e4, .seed = seed}, pool);
      const double share = std::exp(e.log_p), plain = std::sqrt((1.0 - share) / share / 511.0);
      EXPECT_GT(e.log_p - e.log_low, plain) << samples << " " << seed;
    }
}

// The event is certain, so the mean weight is 1 up to noise.
TEST(Itgis, NoProbabilityAboveOne) {
  const CountingModel toy(6, {0.55, 0.3, 0.1, 0.05}, 0);
  ThreadPool pool(1);
  std::size_t cut = 0;
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    const Estimate e = itgis(toy.model(), toy.dist(), toy.target(),
                             {.samples = 4096, .temperature = 20.0, .seed = seed}, pool);
    EXPECT_LE(e.log_p, 0.0);
    EXPECT_LT(e.log_low, 0.0);
    EXPECT_LE(e.log_low, e.log_p);
    EXPECT_GE(e.log_high, e.log_p);
    cut += e.guarantee == Guarantee::kConsistent;
  }
  EXPECT_GT(cut, 0u);  // half of the seeds, or so
  EXPECT_LT(cut, 6u);
}

TEST(Itgis, SameForAnyThreads) {
  const CountingModel toy(5, {0.5, 0.3, 0.15, 0.05}, 9);
  const ItgisConfig config{.samples = 1000, .batch = 150, .temperature = 30.0, .seed = 7};
  ThreadPool one(1);
  Estimate expected = itgis(toy.model(), toy.dist(), toy.target(), config, one);
  EXPECT_EQ(expected.status, Status::kOk);
  EXPECT_EQ(expected.guarantee, Guarantee::kUnbiased);
  EXPECT_EQ(expected.cost.forward, 1000u);
  EXPECT_EQ(expected.triggers.size(), 3u);
  for (const Trigger& t : expected.triggers)
    EXPECT_GE(std::accumulate(t.tokens.begin(), t.tokens.end() - 1, 0), 9);
  for (const std::size_t threads : {2, 7}) {
    ThreadPool pool(threads);
    Estimate found = itgis(toy.model(), toy.dist(), toy.target(), config, pool);
    found.cost.seconds = expected.cost.seconds = 0.0;
    EXPECT_EQ(to_json(found), to_json(expected));
  }
}

// An event that never happens: 0, with a bound that is at least as good as the plain first batch's.
TEST(Itgis, ZeroComesWithABound) {
  const CountingModel toy(5, {0.5, 0.3, 0.15, 0.05}, 16);  // the largest sum is 15
  ThreadPool pool(2);
  const Estimate e =
      itgis(toy.model(), toy.dist(), toy.target(), {.samples = 4096, .temperature = 100.0}, pool);
  EXPECT_EQ(e.status, Status::kNotReachedUpperBound);
  EXPECT_EQ(std::exp(e.log_p), 0.0);
  EXPECT_LT(std::exp(e.log_high), std::log(40.0) / 256.0);
  EXPECT_GT(std::exp(e.log_high), std::log(40.0) / 4096.0);
}

TEST(Itgis, StopsWhenAsked) {
  const CountingModel toy(5, {0.5, 0.3, 0.15, 0.05}, 9);
  ThreadPool pool(1);
  const Estimate e = itgis(toy.model(), toy.dist(), toy.target(), {.samples = 4096, .temperature = 30.0},
                           pool, [](const Progress& p) { return p.done < 512; });
  EXPECT_EQ(e.cost.forward, 512u);
  ASSERT_FALSE(e.warnings.empty());
  EXPECT_NE(e.warnings.back().find("512 of 4096"), std::string::npos);
}

TEST(Itgis, RefusesBadSettings) {
  EXPECT_THROW(ItgisConfig{.samples = 10}.validate(), InputError);
  EXPECT_THROW(ItgisConfig{.batch = 0}.validate(), InputError);
  EXPECT_THROW(ItgisConfig{.decay = 1.0}.validate(), InputError);
  EXPECT_THROW(ItgisConfig{.temperature = 0.0}.validate(), InputError);
  Distribution fixed;
  const CountingModel toy(1, {0.5, 0.3, 0.15, 0.05}, 1);
  fixed = toy.dist();
  fixed.positions = {1, 1};
  ThreadPool pool(1);
  EXPECT_THROW(itgis(toy.model(), fixed, toy.target(), {.samples = 256}, pool), InputError);
}

}  // namespace
}  // namespace deeptail
