#include "deeptail/mhis.h"

#include <gtest/gtest.h>

#include <numeric>

#include "core/random.h"
#include "core/statistics.h"
#include "estimators/mhis/bridge.h"
#include "estimators/mhis/chains.h"
#include "sizes.h"
#include "unit/estimators/counting_model.h"
#include "unit/estimators/enumerated.h"

namespace deeptail {
namespace {

double value_of(const Estimate& e, const std::string& name) {
  for (const auto& [key, found] : e.diagnostics)
    if (key == name) return found;
  return std::nan("");
}

// The chains' law against enumeration of all 64 inputs, by chi-square (false alarm 1e-3). 64 independent
// chains; draws of one chain are 30 steps apart over 3 positions, with an acceptance above 1/2, so nearly
// independent.
TEST(MhisChains, HaveTheStatedLaw) {
  const CountingModel toy(3, {0.4, 0.3, 0.2, 0.1}, 5);
  const Target target = toy.target();
  const MhisConfig config{.chains = 64, .burn_in = 100, .temperature = 25.0, .seed = 11};
  const TokenGradients gradients_of(toy.model(), toy.dist());
  const GradientEngine engine(toy.model());
  const MarginTest test(toy.model().head(), target);
  const ChainProblem problem{toy.model(), toy.dist(), target, gradients_of, engine, test, nullptr};
  ChainGroup chains(problem, config, 0, config.chains);
  const std::uint64_t thinning = 30, draws = sized(100, 20);
  ChainRecord record(config.chains, thinning * draws);
  chains.run(0, config.burn_in, record);
  std::map<std::vector<TokenId>, double> seen;
  for (std::uint64_t k = 0; k < draws; ++k) {
    chains.run(config.burn_in + k * thinning, config.burn_in + (k + 1) * thinning, record);
    for (std::size_t i = 0; i < config.chains; ++i) {
      const auto tokens = chains.tokens(i);
      seen[{tokens.begin(), tokens.end()}] += 1.0;
    }
  }
  const double steps = static_cast<double>(config.burn_in + thinning * draws);
  EXPECT_GT(static_cast<double>(chains.accepted()) / (steps * 64.0), 0.5);

  double z = 0.0;
  const auto inputs = enumerate(toy.model(), toy.dist(), CountingModel::kTarget);
  for (const EnumeratedInput& x : inputs) z += x.p * std::exp(x.logit / config.temperature);
  const double n = static_cast<double>(draws * config.chains);
  double chi_square = 0.0, rest_expected = 0.0, rest_seen = 0.0, degrees = -1.0, largest_shift = 0.0;
  for (const EnumeratedInput& x : inputs) {
    const double pi = x.p * std::exp(x.logit / config.temperature) / z;
    largest_shift = std::max(largest_shift, std::abs(std::log(pi / x.p)));
    if (n * pi < 5.0) {
      rest_expected += n * pi, rest_seen += seen[x.tokens];
      continue;
    }
    chi_square += (seen[x.tokens] - n * pi) * (seen[x.tokens] - n * pi) / (n * pi);
    degrees += 1.0;
  }
  if (rest_expected > 0.0)
    chi_square += (rest_seen - rest_expected) * (rest_seen - rest_expected) / rest_expected, degrees += 1.0;
  EXPECT_GT(chi_squared_tail(chi_square, degrees), 1e-3) << chi_square << " at " << degrees;
  EXPECT_GT(largest_shift, 0.5);  // the law is not just p
}

struct Errors {
  double rms = 0.0;         // of log p
  double chi_square = 0.0;  // of the errors in units of each estimate's own relative_sd
};
constexpr std::uint64_t kErrorSeeds = 8;
Errors errors_of(const CountingModel& toy, std::uint64_t samples, Normaliser normaliser, ThreadPool& pool) {
  Errors out;
  for (std::uint64_t seed = 1; seed <= kErrorSeeds; ++seed) {
    const Estimate e = mhis(toy.model(), toy.dist(), toy.target(),
                            {.samples = samples,
                             .burn_in = 64,
                             .temperature = 25.0,
                             .seed = seed,
                             .normaliser = normaliser,
                             .bridge_inputs = std::max<std::uint64_t>(64, samples / 4)},
                            pool);
    const double error = e.log_p - std::log(toy.truth());
    const double z = error / value_of(e, "relative_sd");
    out.rms += error * error;
    out.chi_square += z * z;
  }
  out.rms = std::sqrt(out.rms / static_cast<double>(kErrorSeeds));
  return out;
}

// Eight times the samples: a third of the error. With many samples the error is what the interval says:
// chi-square of 8 seeds at 1e-4 (the spread of 32 chains is itself uncertain by an eighth, so that the rate
// is nearer 1e-3).
TEST(Mhis, ConvergesToTheTruth) {
  const CountingModel toy(6, {0.55, 0.3, 0.1, 0.05}, 11);
  ThreadPool pool(2);
  const Errors few = errors_of(toy, 1 << 9, Normaliser::kHarmonic, pool);
  const Errors more = errors_of(toy, 1 << 12, Normaliser::kHarmonic, pool);
  EXPECT_LT(more.rms, 0.6 * few.rms);
  if (sized(false, true)) return;
  const Errors many = errors_of(toy, 1 << 15, Normaliser::kHarmonic, pool);
  EXPECT_LT(many.rms, 0.6 * more.rms);
  const double limit = chi_squared_upper_quantile(1e-4, static_cast<double>(kErrorSeeds));
  EXPECT_LT(many.chi_square, limit);
  EXPECT_LT(errors_of(toy, 1 << 14, Normaliser::kBridge, pool).chi_square, limit);
}

// p = N(0, 1) and l = 2 x: p e^l / Z is N(2, 1), Z = e^2. Standard error about 0.02 here; 5 of them.
TEST(Bridge, FindsTheNormaliser) {
  std::vector<double> plain, tilted;
  for (std::uint64_t i = 0; i < 20000; ++i) {
    const auto normal = [&](std::uint32_t slot) {
      return normal_quantile(unit_double(uniform64({5, Stream::kInputs}, i, slot)) + 0x1p-54);
    };
    plain.push_back(2.0 * normal(0));
    tilted.push_back(2.0 * (2.0 + normal(1)));
  }
  const BridgeResult found = bridge(plain, tilted, 0.0);
  EXPECT_TRUE(found.settled);
  EXPECT_NEAR(found.log_z, 2.0, 0.1);
  EXPECT_NEAR(bridge(plain, tilted, 50.0).log_z, found.log_z, 1e-6);  // wherever it starts
  EXPECT_FALSE(bridge(std::vector<double>{-1e6}, std::vector<double>{1e6}, 0.0).settled);
}

// The bridge's Z on the toy, against enumeration.
TEST(Mhis, BridgedNormaliserIsRight) {
  const CountingModel toy(4, {0.4, 0.3, 0.2, 0.1}, 7);
  ThreadPool pool(2);
  const Estimate e = mhis(toy.model(), toy.dist(), toy.target(),
                          {.samples = 1 << 13,
                           .burn_in = 64,
                           .temperature = 25.0,
                           .normaliser = Normaliser::kBridge,
                           .bridge_inputs = 1 << 12},
                          pool);
  double z = 0.0;
  for (const EnumeratedInput& x : enumerate(toy.model(), toy.dist(), CountingModel::kTarget))
    z += x.p * std::exp(x.logit / 25.0);
  EXPECT_NEAR(value_of(e, "log_normaliser"), std::log(z), 5.0 * value_of(e, "normaliser_relative_sd"));
  EXPECT_LT(value_of(e, "normaliser_relative_sd"), 0.05);
  EXPECT_NEAR(e.log_p, std::log(toy.truth()), 0.2);
  EXPECT_EQ(e.cost.forward, (1u << 13) + 32u * 64u + 32u + (1u << 12));
}

TEST(Mhis, ACertainEventHasAnIntervalBelowOne) {
  const CountingModel toy(4, {0.4, 0.3, 0.2, 0.1}, 0);
  ThreadPool pool(1);
  for (const Normaliser normaliser : {Normaliser::kHarmonic, Normaliser::kBridge})
    for (std::uint64_t seed = 1; seed <= sized(12, 3); ++seed) {
      const Estimate e = mhis(
          toy.model(), toy.dist(), toy.target(),
          {.samples = 2000, .burn_in = 0, .temperature = 20.0, .seed = seed, .normaliser = normaliser}, pool);
      EXPECT_LE(e.log_p, 0.0);
      EXPECT_LT(e.log_low, 0.0);
      EXPECT_LE(e.log_low, e.log_high);
    }
}

TEST(Mhis, SameForAnyThreads) {
  const CountingModel toy(5, {0.5, 0.3, 0.15, 0.05}, 9);
  const MhisConfig config{.samples = 700, .chains = 7, .burn_in = 20, .temperature = 30.0, .seed = 7};
  ThreadPool one(1);
  Estimate expected = mhis(toy.model(), toy.dist(), toy.target(), config, one);
  EXPECT_EQ(expected.status, Status::kOk);
  EXPECT_EQ(expected.guarantee, Guarantee::kConsistent);
  EXPECT_EQ(expected.triggers.size(), 3u);
  for (const Trigger& t : expected.triggers)
    EXPECT_GE(std::accumulate(t.tokens.begin(), t.tokens.end() - 1, 0), 9);
  for (const std::size_t threads : {2, 7}) {
    ThreadPool pool(threads);
    Estimate found = mhis(toy.model(), toy.dist(), toy.target(), config, pool);
    found.cost.seconds = expected.cost.seconds = 0.0;
    EXPECT_EQ(to_json(found), to_json(expected));
  }
}

TEST(Mhis, ZeroComesWithABound) {
  const CountingModel toy(5, {0.5, 0.3, 0.15, 0.05}, 16);  // the largest sum is 15
  ThreadPool pool(1);
  MhisConfig config{.samples = 640, .burn_in = 10, .temperature = 50.0, .bound_inputs = 1000};
  const Estimate e = mhis(toy.model(), toy.dist(), toy.target(), config, pool);
  EXPECT_EQ(e.status, Status::kNotReachedUpperBound);
  EXPECT_NEAR(std::exp(e.log_high), clopper_pearson(0, 1000).high, 1e-12);
  config.bound_inputs = 0;
  EXPECT_EQ(mhis(toy.model(), toy.dist(), toy.target(), config, pool).log_high, 0.0);
  // The chains are too cold and too short to see what plain inputs see: it is said that 0 is wrong.
  const CountingModel often(5, {0.5, 0.3, 0.15, 0.05}, 9);
  config = {.samples = 2, .chains = 2, .burn_in = 0, .temperature = 1e6, .bound_inputs = 4000};
  const Estimate wrong = mhis(often.model(), often.dist(), often.target(), config, pool);
  ASSERT_EQ(wrong.status, Status::kNotReachedUpperBound);
  EXPECT_GE(std::exp(wrong.log_high), often.truth());
  EXPECT_NE(wrong.warnings.front().find("the estimate 0 is wrong"), std::string::npos);
}

// Hits, but their weights are too small for a number: no claim that p is 0.
TEST(Mhis, WeightsThatVanishGiveABoundOnly) {
  const CountingModel toy(6, {0.55, 0.3, 0.1, 0.05}, 8);
  ThreadPool pool(1);
  const Estimate e =
      mhis(toy.model(), toy.dist(), toy.target(), {.samples = 4096, .burn_in = 0, .temperature = 1e-5}, pool);
  ASSERT_GT(value_of(e, "hits"), 0.0);
  EXPECT_EQ(e.status, Status::kNotReachedUpperBound);
  EXPECT_GE(e.log_high, std::log(toy.truth()));
  EXPECT_FALSE(e.warnings.empty());
}

TEST(Mhis, StopsWhenAsked) {
  const CountingModel toy(5, {0.5, 0.3, 0.15, 0.05}, 9);
  ThreadPool pool(1);
  const MhisConfig config{.samples = 1 << 14, .burn_in = 128, .temperature = 30.0};
  const auto until = [&](std::uint64_t steps) {
    return mhis(toy.model(), toy.dist(), toy.target(), config, pool,
                [&](const Progress& p) { return p.done < steps * 32; });
  };
  EXPECT_NE(until(256).warnings.back().find("ended after 4096 of 16384"), std::string::npos);
  const Estimate early = until(64);  // within the burn-in
  EXPECT_EQ(early.status, Status::kNotReachedUpperBound);
  EXPECT_NE(early.warnings.back().find("ended after 0 of"), std::string::npos);
}

TEST(Mhis, RefusesBadSettings) {
  EXPECT_THROW(MhisConfig{.chains = 1}.validate(), InputError);
  EXPECT_THROW(MhisConfig{.samples = 8}.validate(), InputError);
  EXPECT_THROW(MhisConfig{.temperature = -1.0}.validate(), InputError);
  EXPECT_THROW((MhisConfig{.normaliser = Normaliser::kBridge, .bridge_inputs = 3}.validate()), InputError);
  EXPECT_EQ(value_named<Normaliser>("bridge"), Normaliser::kBridge);
  EXPECT_FALSE(value_named<Normaliser>("mean"));
}

}  // namespace
}  // namespace deeptail
