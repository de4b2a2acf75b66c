#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "core/json.h"
#include "core/random.h"
#include "core/statistics.h"
#include "sizes.h"
#include "zoo.h"

namespace deeptail {
namespace {

// Computed by tests/reference/make_input_fixtures.py with exact fractions.
TEST(Sampling, GoldenSamples) {
  const InputFile file(fmt::format("{}/inputs/golden_samples.json", DEEPTAIL_TEST_DATA));
  const Json cases = parse_json(file.text(), file.path());
  ASSERT_EQ(cases.size(), 48u);
  for (const Json& c : cases) {
    const Distribution dist = zoo(c.at("dist"));
    std::vector<TokenId> tokens(dist.length());
    sample(dist, c.at("seed"), c.at("index"), tokens);
    EXPECT_EQ(tokens, c.at("tokens").get<std::vector<TokenId>>()) << dist.name;
  }
}

TEST(Sampling, SameForAnyThreadsOrderAndRange) {
  const Distribution dist = zoo("english");
  const std::size_t n = 3000, length = dist.length();
  std::vector<TokenId> one(n * length);
  for (std::size_t i = n; i-- > 0;) sample(dist, 9, 1000 + i, std::span(one).subspan(i * length, length));
  for (const std::size_t threads : {1, 2, 7}) {
    ThreadPool pool(threads);
    std::vector<TokenId> all(n * length), tail(100 * length);
    sample_range(dist, 9, 1000, pool, all);
    EXPECT_EQ(all, one);
    sample_range(dist, 9, 1000 + n - 100, pool, tail);
    EXPECT_TRUE(std::equal(tail.begin(), tail.end(), one.end() - static_cast<std::ptrdiff_t>(tail.size())));
  }
}

// Pearson's statistic of counts against a table; tokens expected fewer than 10 times are taken together.
double p_value(const TokenTable& table, const std::vector<std::uint64_t>& counts, double n) {
  double statistic = 0.0, rest_expected = 0.0, rest_seen = 0.0;
  int cells = 0;
  const auto add = [&](double expected, double seen) {
    statistic += (seen - expected) * (seen - expected) / expected;
    ++cells;
  };
  for (std::size_t i = 0; i < table.size(); ++i) {
    const double expected = n * table.probability(i), seen = static_cast<double>(counts[i]);
    if (expected >= 10.0)
      add(expected, seen);
    else
      rest_expected += expected, rest_seen += seen;
  }
  if (rest_expected >= 10.0) add(rest_expected, rest_seen);
  if (cells < 2) return 1.0;
  return chi_squared_tail(statistic, cells - 1);
}

// False-alarm rate of the whole test: 1e-4, shared equally (Bonferroni) by all positions that are not
// constant.
TEST(Sampling, ChiSquareOfEveryPositionOfEveryDistribution) {
  const std::size_t n = sized(40000, 3000);
  std::vector<double> p_values;
  std::vector<std::string> where;
  ThreadPool pool;
  for (const char* name : kZoo) {
    const Distribution dist = zoo(name);
    std::vector<TokenId> tokens(n * dist.length());
    sample_range(dist, 12345, 0, pool, tokens);
    for (std::size_t position = 0; position < dist.length(); ++position) {
      const TokenTable& table = dist.table(position);
      std::vector<std::uint64_t> counts(table.size());
      for (std::size_t i = 0; i < n; ++i) {
        const TokenId token = tokens[i * dist.length() + position];
        const auto found = std::lower_bound(table.ids().begin(), table.ids().end(), token);
        ASSERT_TRUE(found != table.ids().end() && *found == token);
        ++counts[static_cast<std::size_t>(found - table.ids().begin())];
      }
      if (table.size() == 1) continue;
      p_values.push_back(p_value(table, counts, static_cast<double>(n)));
      where.push_back(fmt::format("{} position {}", name, position));
    }
  }
  ASSERT_EQ(p_values.size(),
            204u);  // 32 hex, camel, colon and if each; 1 + 16 caps, 1 + 24 english, 24 spanish, 9 + 1 icl
  for (std::size_t i = 0; i < p_values.size(); ++i)
    EXPECT_GT(p_values[i], 1e-4 / static_cast<double>(p_values.size())) << where[i];
}

// Neighbouring positions share one Philox block, neighbouring samples a counter: pairs must be independent.
// Two tests at 1e-4 each.
TEST(Sampling, NeighboursAreIndependent) {
  const std::size_t n = sized(1 << 18, 1 << 14), cells = 16;
  for (const bool positions : {true, false}) {
    std::vector<double> counts(cells * cells);
    for (std::size_t i = 0; i < n; ++i) {
      const RngKey key{77, Stream::kInputs};
      const std::uint64_t a = uniform64(key, i, 4),
                          b = positions ? uniform64(key, i, 5) : uniform64(key, i + 1, 4);
      counts[(a >> 60) * cells + (b >> 60)] += 1.0;
    }
    const double expected = static_cast<double>(n) / static_cast<double>(cells * cells);
    double statistic = 0.0;
    for (const double c : counts) statistic += (c - expected) * (c - expected) / expected;
    EXPECT_GT(chi_squared_tail(statistic, cells * cells - 1), 1e-4);
  }
}

TEST(Sampling, LogProbabilityOfASequence) {
  const Distribution dist = zoo("caps");
  std::vector<TokenId> tokens(dist.length());
  sample(dist, 1, 0, tokens);
  double expected = 0.0;
  for (std::size_t p = 0; p < dist.length(); ++p) expected += dist.table(p).log_probability(tokens[p]);
  EXPECT_EQ(dist.log_probability(tokens), expected);
  EXPECT_TRUE(std::isfinite(expected));
  tokens[0] = 5;
  EXPECT_EQ(dist.log_probability(tokens), -INFINITY);
  EXPECT_EQ(dist.support().at(1), (std::vector<TokenId>{1984, 2759}));
}

}  // namespace
}  // namespace deeptail
