#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>

#include "deeptail/loss.h"
#include "sizes.h"

namespace deeptail {
namespace {

// Near p = q every SPB loss is half the squared relative error, so with many counts the floor of one target
// is 1/(2k) with relative spread sqrt(2) (chi-squared with one degree of freedom), up to terms of order 1/k.
TEST(NoiseFloor, ManyCounts) {
  const std::uint64_t counts[] = {100000};
  for (const double alpha : {0.0, 1.0, 1.5, 2.0, 4.0}) {
    const NoiseFloor floor = noise_floor({.alpha = alpha}, counts, std::uint64_t{1} << 40);
    EXPECT_NEAR(floor.mean * 2e5, 1.0, 1e-3) << alpha;
    EXPECT_NEAR(floor.sd * 2e5, std::sqrt(2.0), 1e-2) << alpha;
  }
}

// Beyond what can be summed one by one; and where that ends, both ways agree.
TEST(NoiseFloor, AnyNumberOfCounts) {
  for (const int power : {40, 53, 63}) {
    const std::uint64_t samples = std::uint64_t{1} << power, counts[] = {samples / 4};
    const double k = static_cast<double>(counts[0]);
    const NoiseFloor floor = noise_floor({.alpha = 1.5}, counts, samples);
    EXPECT_NEAR(floor.mean * 2.0 * k / 0.75, 1.0, 1e-6) << power;
    EXPECT_NEAR(floor.sd * 2.0 * k / 0.75, std::sqrt(2.0), 1e-6) << power;
  }
  const std::uint64_t below[] = {(1 << 28) - (1 << 10)}, above[] = {(1 << 28) + (1 << 10)};
  const std::uint64_t samples = std::uint64_t{1} << 52;
  const NoiseFloor a = noise_floor({.alpha = 4.0}, below, samples),
                   b = noise_floor({.alpha = 4.0}, above, samples);
  EXPECT_NEAR(a.mean * static_cast<double>(below[0]) / (b.mean * static_cast<double>(above[0])), 1.0, 1e-7);
  EXPECT_NEAR(a.sd * static_cast<double>(below[0]) / (b.sd * static_cast<double>(above[0])), 1.0, 1e-7);
}

// alpha = 0, gamma = -2 would be plain squared error; at alpha = 2 with few samples the sum can be written
// out.
TEST(NoiseFloor, ThreeSamplesByHand) {
  const std::uint64_t counts[] = {1};
  // Binomial(3, 1/3) at 1 and 2 has the weights 12/27 and 6/27: conditioned on 1 .. 2 they are 2/3 and 1/3.
  const double loss = itakura_saito(2.0 / 3.0, 1.0 / 3.0);
  const NoiseFloor floor = noise_floor({.alpha = 2.0}, counts, 3);
  EXPECT_NEAR(floor.mean, loss / 3.0, 1e-15);
  EXPECT_NEAR(floor.sd, loss * std::sqrt(1.0 / 3.0 - 1.0 / 9.0), 1e-15);
}

TEST(NoiseFloor, TargetsAverageAndSpreadShrinks) {
  const std::vector<std::uint64_t> one{7}, many(100, 7);
  const NoiseFloor a = noise_floor({.alpha = 1.5}, one, 1 << 20),
                   b = noise_floor({.alpha = 1.5}, many, 1 << 20);
  EXPECT_NEAR(a.mean, b.mean, 1e-14);
  EXPECT_NEAR(a.sd / b.sd, 10.0, 1e-9);
}

TEST(NoiseFloor, RefusesCountsThatAreNoTruth) {
  for (const std::uint64_t count : {std::uint64_t{0}, std::uint64_t{8}, std::uint64_t{9}}) {
    const std::uint64_t counts[] = {3, count};
    EXPECT_THROW(noise_floor({.alpha = 1.5}, counts, 8), InputError);
  }
  EXPECT_THROW(noise_floor({.alpha = 1.5}, {}, 8), InputError);
}

std::vector<double> ramp(std::size_t n, double step) {
  std::vector<double> out(n);
  for (std::size_t i = 0; i < n; ++i) out[i] = step * std::sin(static_cast<double>(i) * 1.3) + 2.0;
  return out;
}

// The bootstrap distribution of a mean has the standard deviation s / sqrt(n), so its 95% interval is about
// 2 * 1.96 s / sqrt(n) wide; 10000 resamples fix each end to about 0.03 of that sd, and n = 400 is near
// normal.
TEST(PairedBootstrap, IntervalHasTheWidthOfTheStandardError) {
  ThreadPool pool(1);
  const std::vector<double> a = ramp(400, 1.0), b(400, 2.0);
  const PairedBootstrap result = paired_bootstrap(a, b, {.resamples = sized(10000, 1000)}, pool);
  double mean = 0.0, variance = 0.0;
  for (const double loss : a) mean += (loss - 2.0) / 400.0;
  for (const double loss : a) variance += (loss - 2.0 - mean) * (loss - 2.0 - mean) / 400.0;
  EXPECT_NEAR(result.difference, mean, 1e-15);
  if (sized(false, true)) return;
  const double standard_error = std::sqrt(variance / 400.0);
  EXPECT_NEAR((result.ci95[1] - result.ci95[0]) / (2.0 * 1.96 * standard_error), 1.0, 0.06);
  EXPECT_NEAR(0.5 * (result.ci95[0] + result.ci95[1]), mean, 0.15 * standard_error);
}

TEST(PairedBootstrap, SureWinsAndTies) {
  ThreadPool pool(1);
  const std::vector<double> low(20, 1.0), high(20, 2.0);
  EXPECT_EQ(paired_bootstrap(low, high, {}, pool).a_beats_b, 1.0);
  EXPECT_EQ(paired_bootstrap(high, low, {}, pool).a_beats_b, 0.0);
  EXPECT_EQ(paired_bootstrap(low, low, {}, pool).a_beats_b, 0.5);
}

TEST(PairedBootstrap, DependsOnTheSeedAndNotOnThreads) {
  const std::vector<double> a = ramp(57, 1.0), b = ramp(57, 0.7);
  ThreadPool one(1);
  const PairedBootstrap expected = paired_bootstrap(a, b, {.resamples = 1000, .seed = 3}, one);
  for (const std::size_t threads : {2u, 7u}) {
    ThreadPool pool(threads);
    const PairedBootstrap found = paired_bootstrap(a, b, {.resamples = 1000, .seed = 3}, pool);
    EXPECT_EQ(found.ci95[0], expected.ci95[0]);
    EXPECT_EQ(found.ci95[1], expected.ci95[1]);
    EXPECT_EQ(found.a_beats_b, expected.a_beats_b);
  }
  EXPECT_NE(paired_bootstrap(a, b, {.resamples = 1000, .seed = 4}, one).ci95[0], expected.ci95[0]);
}

TEST(PairedBootstrap, RefusesInfiniteAndUnpairedLosses) {
  ThreadPool pool(1);
  const double inf = std::numeric_limits<double>::infinity();
  EXPECT_THROW(paired_bootstrap(std::vector{1.0, inf}, std::vector{1.0, 2.0}, {}, pool), InputError);
  EXPECT_THROW(paired_bootstrap(std::vector{1.0}, std::vector{1.0, 2.0}, {}, pool), InputError);
  EXPECT_THROW(paired_bootstrap(std::vector<double>{}, std::vector<double>{}, {}, pool), InputError);
  EXPECT_THROW(paired_bootstrap(std::vector{1.0}, std::vector{2.0}, {.resamples = 0}, pool), InputError);
}

}  // namespace
}  // namespace deeptail
