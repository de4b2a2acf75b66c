// The closed-form problems over 200 seeds: frozen levels must be unbiased, and nominal 95% intervals of 8
// replicas must cover the truth in 92 to 98% of the runs without lost modes.
//
// False alarms: each mean of p / truth is compared at 4 standard errors (6e-5 each, 1e-3 for all problems);
// the coverage over all problems together has a standard error of 0.4%.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "deeptail/closed_form.h"

namespace deeptail {
namespace {

std::size_t n_seeds() {
  const char* text = std::getenv("DEEPTAIL_SEEDS");
  return text ? static_cast<std::size_t>(std::atoi(text)) : 200;
}

struct SeedResult {
  std::vector<double> ratios;  // p / truth of every replica
  bool covered = false, lost_mode = false;
};

SeedResult run_seed(const ClosedFormProblem& problem, std::uint64_t seed) {
  ThreadPool one(1);
  const ClosedFormResult result = run_closed_form(problem, {.seed = seed}, one);
  SeedResult out;
  for (const SplittingRun& run : result.runs) out.ratios.push_back(std::exp(run.log_p - problem.log_p));
  out.covered = result.summary.log_low <= problem.log_p && problem.log_p <= result.summary.log_high;
  out.lost_mode = result.summary.disagree;
  return out;
}

TEST(SelftestSeeds, FrozenLevelsAreUnbiasedAndIntervalsCover) {
  ThreadPool pool;
  double covered = 0.0, counted = 0.0;
  for (const ClosedFormProblem& problem : selftest_problems()) {
    std::vector<SeedResult> results(n_seeds());
    pool.for_each_block(results.size(),
                        [&](std::size_t i, std::size_t) { results[i] = run_seed(problem, 1000 + i); });
    double n = 0.0, sum = 0.0, squares = 0.0, problem_covered = 0.0, lost = 0.0;
    for (const SeedResult& r : results) {
      // Replicas of a seed share its pilot's levels, so a seed counts as one value.
      double mean = 0.0;
      for (const double ratio : r.ratios) mean += ratio / static_cast<double>(r.ratios.size());
      n += 1.0;
      sum += mean;
      squares += mean * mean;
      lost += r.lost_mode;
      if (!r.lost_mode) problem_covered += r.covered;
    }
    const double mean = sum / n, error = std::sqrt((squares / n - mean * mean) / (n - 1.0));
    fmt::print("{:<46} mean p/truth {:.4f} +- {:.4f} ({:+.1f} se)  covered {:.1f}% of {}  disagree {}\n",
               problem.name, mean, error, (mean - 1.0) / error, 100.0 * problem_covered / (n - lost),
               n - lost, lost);
    std::fflush(stdout);
    EXPECT_LT(std::abs(mean - 1.0), 4.0 * error) << problem.name;
    covered += problem_covered;
    counted += n - lost;
  }
  fmt::print("coverage over all problems: {:.1f}% of {}\n", 100.0 * covered / counted, counted);
  EXPECT_GE(covered / counted, 0.92);
  EXPECT_LE(covered / counted, 0.98);
}

}  // namespace
}  // namespace deeptail
