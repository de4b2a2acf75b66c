// All tokens at once: on a law that can be enumerated the mean of every row over many seeds, and the shipped models
// against their counts. DEEPTAIL_SEEDS: of the first; DEEPTAIL_PAIRS (dt-1l:hex,dt-2l:if), DEEPTAIL_BUDGET and
// DEEPTAIL_THREADS: of the second.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <map>
#include <sstream>

#include "deeptail/all_tokens.h"
#include "deeptail/truth.h"
#include "unit/estimators/few_tokens.h"

namespace deeptail {
namespace {

std::string variable(const char* name, const std::string& otherwise) {
  const char* text = std::getenv(name);
  return text != nullptr ? text : otherwise;
}

// Tokens that nearly every seed sees: within 5 standard errors each (6e-7), intervals cover 93 % or more.
TEST(AllTokens, MeansOverManySeeds) {
  const Distribution dist = few_tokens(6);
  const auto n = static_cast<std::size_t>(std::stoul(variable("DEEPTAIL_SEEDS", "200")));
  ThreadPool pool;
  const std::vector<double> truth = exact_probabilities(dist, pool);
  std::vector<std::map<TokenId, double>> found(n);
  std::vector<std::size_t> rows(n), covered(n);
  pool.for_each_block(n, [&](std::size_t i, std::size_t) {
    ThreadPool one(1);
    const AllTokens all = estimate_all(dt_1l(), dist, {.budget = 4e4, .seed = 1 + i, .above = 1e-16}, one);
    for (const Estimate& e : all.rows) {
      const double q = truth[static_cast<std::size_t>(e.target.front())];
      found[i][e.target.front()] = std::exp(e.log_p) / q;
      ++rows[i];
      covered[i] += e.log_low <= std::log(q) && std::log(q) <= e.log_high;
    }
  });
  std::map<TokenId, std::vector<double>> by_token;
  double all_rows = 0.0, all_covered = 0.0;
  for (std::size_t i = 0; i < n; ++i) {
    all_rows += static_cast<double>(rows[i]), all_covered += static_cast<double>(covered[i]);
    for (const auto& [token, ratio] : found[i]) by_token[token].push_back(ratio);
  }
  for (auto& [token, ratios] : by_token) {
    const bool usual = static_cast<double>(ratios.size()) >= 0.9 * static_cast<double>(n);
    ratios.resize(n, 0.0);  // where it was not seen
    double sum = 0.0, squares = 0.0;
    for (const double r : ratios) sum += r, squares += r * r;
    const double m = static_cast<double>(n), mean = sum / m,
                 error = std::sqrt((squares / m - mean * mean) / (m - 1.0));
    fmt::print("token {:>5}  p {:.3e}  mean of p / truth {:.4f} +- {:.4f}\n", token,
               truth[static_cast<std::size_t>(token)], mean, error);
    if (usual) EXPECT_LT(std::abs(mean - 1.0), 5.0 * error + 1e-9) << token;
  }
  fmt::print("{:.1f} % of {:.0f} intervals cover\n", 100.0 * all_covered / all_rows, all_rows);
  EXPECT_GE(all_covered, 0.93 * all_rows);
}

// What rows of one kind come to, against counts.
struct Score {
  double n = 0.0, within2 = 0.0, squares = 0.0, covered = 0.0, worst = 0.0;
  void add(double log10_ratio, bool covers) {
    ++n;
    within2 += std::abs(log10_ratio) < std::log10(2.0);
    squares += log10_ratio * log10_ratio;
    covered += covers;
    worst = std::max(worst, std::abs(log10_ratio));
  }
  void print(const std::string& name) const {
    fmt::print(
        "  {:<12} {:>5} rows  within a factor of two {:.3f}  rms of log10 p {:.3f}  covered {:.3f}  worst "
        "{:.2f}\n",
        name, n, within2 / n, std::sqrt(squares / n), covered / n, worst);
  }
};

void compare(const std::string& name, const std::string& dist_name) {
  constexpr double kAbove = 1e-8, kBelow = 1e-5, kEnough = 100.0;
  const Transformer model = Transformer::load(fmt::format("{}/models/{}", DEEPTAIL_SOURCE, name));
  const Truth truth = read_truth(fmt::format("{}/truth/{}-{}.json", DEEPTAIL_SOURCE, name, dist_name));
  ThreadPool pool(std::stoul(variable("DEEPTAIL_THREADS", "0")));
  const std::clock_t start = std::clock();
  const AllTokens all = estimate_all(
      model, shipped(dist_name),
      {.budget = std::stod(variable("DEEPTAIL_BUDGET", "0")), .seed = 11, .above = kAbove, .below = kBelow},
      pool);
  const auto samples = static_cast<double>(truth.samples());
  std::map<std::string, Score> scores;
  std::map<TokenId, bool> has_row;
  for (const Estimate& e : all.rows) {
    const auto count = static_cast<double>(truth.count(e.target.front()));
    has_row[e.target.front()] = true;
    if (count < kEnough) continue;
    const double error = 1.96 * std::sqrt(count);  // of the count itself
    const bool covers =
        std::log((count - error) / samples) <= e.log_high && std::log((count + error) / samples) >= e.log_low;
    const double ratio = (e.log_p - std::log(count / samples)) / std::log(10.0);
    for (const std::string& kind :
         {std::string("all"), e.method, std::string(e.warnings.empty() ? "unwarned" : "warned")})
      scores[kind].add(ratio, covers);
  }
  std::size_t within = 0, missing = 0;
  for (const auto& [token, count] : truth.counts) {
    const double q = static_cast<double>(count) / samples;
    within += q >= kAbove && q <= kBelow;
    missing += q >= 2.0 * kAbove && q <= 0.5 * kBelow && !has_row.contains(token);
  }
  fmt::print(
      "{} on {}: {} rows, {} tokens counted within the bounds, {} well within have no row; {:.2g} passes, "
      "{:.0f} s, "
      "{:.0f} processor seconds\n",
      name, dist_name, all.rows.size(), within, missing, all.cost.forward_equivalents, all.cost.seconds,
      static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC);
  for (const auto& [kind, score] : scores) score.print(kind);
  EXPECT_GE(scores["all"].within2, 0.95 * scores["all"].n);
  EXPECT_GE(scores["all"].covered, 0.92 * scores["all"].n);
}

TEST(AllTokens, AgainstCounts) {
  std::istringstream pairs(variable("DEEPTAIL_PAIRS", "dt-1l:hex"));
  for (std::string pair; std::getline(pairs, pair, ',');) {
    const std::size_t colon = pair.find(':');
    compare(pair.substr(0, colon), pair.substr(colon + 1));
  }
}

}  // namespace
}  // namespace deeptail
