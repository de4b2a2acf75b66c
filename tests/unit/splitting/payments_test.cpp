// Particles under another law than the prior, and particles that pay other sums than 1, on a line.
#include <gtest/gtest.h>

#include "deeptail/any_particles.h"
#include "sizes.h"
#include "unit/splitting/line.h"

namespace deeptail {
namespace {

// x ~ N(shift, 1) in place of N(0, 1).
struct ShiftedLine {
  double shift = 0.0;
  bool below = false;
  std::function<double(double)> log_payoff = {};
  LineParticles line = {};  // x - shift

  std::size_t size() const { return line.size(); }
  void sample(std::size_t n, std::uint64_t seed) { line.sample(n, seed); }
  void scores(std::span<double> out) {
    line.scores(out);
    for (double& score : out) score += shift;
  }
  void resample(std::span<const std::uint32_t> parents) { line.resample(parents); }
  MoveStats move(double level, std::size_t k, std::uint64_t seed) {
    return line.move(level - shift, k, seed);
  }
  void log_payoffs(std::span<const std::uint32_t> who, std::span<double> out) const {
    for (std::size_t i = 0; i < who.size(); ++i) out[i] = log_payoff(line.x[who[i]] + shift);
  }
  bool pays_below() const { return below; }
};
static_assert(Paying<ShiftedLine>);

// Mean of exp(log_p) / truth over seeds within 4 standard errors: false alarm 6e-5.
void expect_unbiased(const ShiftedLine& particles, const SplittingConfig& config, double truth,
                     double largest_error) {
  constexpr int kSeeds = sized(400, 10);
  double sum = 0.0, squares = 0.0;
  for (int seed = 1; seed <= kSeeds; ++seed) {
    ShiftedLine copy = particles;
    const double ratio =
        std::exp(run_splitting(copy, config, static_cast<std::uint64_t>(seed)).log_p) / truth;
    sum += ratio;
    squares += ratio * ratio;
  }
  if (kSeeds < 400) return;
  const double mean = sum / kSeeds, error = std::sqrt((squares / kSeeds - mean * mean) / kSeeds);
  EXPECT_LT(std::abs(mean - 1.0), 4 * error);
  EXPECT_LT(error, largest_error);
}

TEST(Payments, AnotherBaseLawWithItsWeightsGivesThePriorsProbability) {
  // Pr[x >= 5] = 2.9e-7 under N(0, 1), from runs under N(shift, 1): prior / base = exp(shift^2 / 2 - shift x).
  for (const double shift : {1.0, 2.0, -0.5}) {
    const ShiftedLine particles{.shift = shift,
                                .log_payoff = [shift](double x) { return 0.5 * shift * shift - shift * x; }};
    expect_unbiased(particles,
                    {.n_particles = 100, .threshold = 5.0, .levels = {1.5, 2.4, 3.1, 3.7, 4.2, 4.6, 5.0}},
                    normal_tail(5.0), 0.2);
  }
}

TEST(Payments, TheTailIntegralAddsWhatDroppedParticlesPay) {
  // E[exp(3 x)] = exp(4.5) under N(0, 1); most of it comes from x about 3, which plain draws hardly see.
  const ShiftedLine particles{.below = true, .log_payoff = [](double x) { return 3.0 * x; }};
  expect_unbiased(particles, {.n_particles = 200, .threshold = 3.5, .levels = {0.8, 1.6, 2.3, 2.9, 3.5}},
                  std::exp(4.5), 0.05);
}

TEST(Payments, WhoPaysOneIsAPlainParticle) {
  const SplittingConfig config{
      .n_particles = 100, .threshold = 4.0, .levels = {1.0, 1.8, 2.5, 3.1, 3.6, 4.0}};
  LineParticles plain;
  ShiftedLine paying{.log_payoff = [](double) { return 0.0; }};
  const SplittingRun a = run_splitting(plain, config, 7), b = run_splitting(paying, config, 7);
  EXPECT_EQ(a.log_p, b.log_p);
  EXPECT_EQ(a.genealogy_variance, b.genealogy_variance);
  EXPECT_EQ(a.level_variance, b.level_variance);
  EXPECT_EQ(b.effective_share, 1.0);
  EXPECT_FALSE(b.weighted);
}

TEST(Payments, AnExtinctRunKeepsWhatWasPaid) {
  const SplittingConfig config{.n_particles = 20, .threshold = 100.0, .levels = {0.0, 100.0}};
  ShiftedLine particles{.below = true, .log_payoff = [](double) { return 0.0; }};
  const SplittingRun run = run_splitting(particles, config, 3);
  EXPECT_EQ(run.end, SplittingEnd::kExtinct);
  EXPECT_NEAR(run.log_p, 0.0, 1e-12);  // everybody paid 1, where he was dropped
}

TEST(Payments, SumsOfLogs) {
  EXPECT_EQ(log_add(-kInfinity, -3.0), -3.0);
  EXPECT_EQ(log_add(-kInfinity, -kInfinity), -kInfinity);
  EXPECT_NEAR(log_add(-1000.0, -1000.0), -1000.0 + std::log(2.0), 1e-12);
  const double payoffs[] = {std::log(2.0), -kInfinity, std::log(4.0)};
  EXPECT_NEAR(log_mean_payoff(payoffs, 12), std::log(0.5), 1e-15);
  EXPECT_EQ(log_mean_payoff({}, 5), -kInfinity);
}

}  // namespace
}  // namespace deeptail
