// tokensplit on models with constructed weights whose rare probability is known exactly, near 1e-9 and 1e-12:
// the mean of p / truth over 100 seeds must lie within 4 standard errors of 1 (false alarm 1e-4 each), and
// nominal 95% intervals must cover the truth in at least 86 of 100 (false alarm 1e-4).
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

#include "deeptail/estimators.h"
#include "unit/estimators/counting_model.h"

namespace deeptail {
namespace {

std::size_t n_seeds() {
  const char* text = std::getenv("DEEPTAIL_SEEDS");
  return text ? static_cast<std::size_t>(std::atoi(text)) : 100;
}

void check(int threshold, double about) {
  const CountingModel toy(24, {0.7, 0.2, 0.08, 0.02}, threshold);
  ASSERT_NEAR(std::log10(toy.truth()), std::log10(about), 0.6);
  std::vector<double> ratio(n_seeds());
  std::vector<int> covered(n_seeds());
  ThreadPool pool;
  pool.for_each_block(n_seeds(), [&](std::size_t i, std::size_t) {
    ThreadPool one(1);
    const Estimate e =
        tokensplit(toy.model(), toy.dist(), toy.target(), {.budget = 4e4, .seed = 100 + i}, one);
    ratio[i] = std::exp(e.log_p) / toy.truth();
    covered[i] = e.log_low <= std::log(toy.truth()) && std::log(toy.truth()) <= e.log_high;
  });
  double sum = 0.0, squares = 0.0, hits = 0.0;
  const auto n = static_cast<double>(n_seeds());
  for (std::size_t i = 0; i < n_seeds(); ++i) {
    sum += ratio[i];
    squares += ratio[i] * ratio[i];
    hits += covered[i];
  }
  const double mean = sum / n, error = std::sqrt((squares / n - mean * mean) / (n - 1.0));
  fmt::print("truth {:.4g}: mean p/truth {:.4f} +- {:.4f} ({:+.1f} se), covered {:.0f}% of {}\n", toy.truth(),
             mean, error, (mean - 1.0) / error, 100.0 * hits / n, n);
  EXPECT_LT(std::abs(mean - 1.0), 4.0 * error);
  EXPECT_GE(hits / n, 0.86);
}

TEST(TokensplitDeepTail, OneInABillion) { check(37, 1e-9); }
TEST(TokensplitDeepTail, OneInATrillion) { check(43, 1e-12); }

}  // namespace
}  // namespace deeptail
