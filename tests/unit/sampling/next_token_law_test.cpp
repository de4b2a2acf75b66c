// The law of the next token against plain loops in double, and its draws against the law.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>

#include <gtest/gtest.h>

#include "core/random.h"
#include "core/statistics.h"
#include "deeptail/sampling.h"

namespace deeptail {
namespace {

constexpr float kNoToken = -std::numeric_limits<float>::infinity();
constexpr std::uint64_t kMostNumber = std::numeric_limits<std::uint64_t>::max();

// HuggingFace's warpers as they are written down: everything sorted, everything in double.
std::vector<double> plain_law(const SamplingConfig& config, std::span<const float> logits) {
  const std::size_t n = logits.size();
  std::vector<std::size_t> order(n);
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) { return logits[a] > logits[b]; });
  std::vector<double> p(n);
  const double top = static_cast<double>(logits[order[0]]);
  for (std::size_t i = 0; i < n; ++i)
    p[i] = std::exp((static_cast<double>(logits[i]) - top) / config.temperature);
  if (config.greedy)
    for (std::size_t r = 1; r < n; ++r) p[order[r]] = 0.0;
  if (config.top_k > 0 && config.top_k < n) {
    const float least = logits[order[config.top_k - 1]];
    for (std::size_t i = 0; i < n; ++i)
      if (logits[i] < least) p[i] = 0.0;
  }
  const double total = std::accumulate(p.begin(), p.end(), 0.0);
  double above = 0.0;
  for (std::size_t r = 0; r < n; ++r) {
    const double mass = p[order[r]];
    if (config.top_p < 1.0 && above >= config.top_p * total) p[order[r]] = 0.0;
    above += mass;
  }
  const double kept = std::accumulate(p.begin(), p.end(), 0.0);
  for (double& x : p) x /= kept;
  return p;
}

std::vector<float> random_logits(std::size_t n, double spread, unsigned seed) {
  std::mt19937 engine(seed);
  std::normal_distribution<double> normal(0.0, spread);
  std::vector<float> out(n);
  for (float& x : out) x = static_cast<float>(normal(engine) - 3.0);
  return out;
}

void expect_law(const SamplingConfig& config, std::span<const float> logits) {
  NextTokenLaw law(config, logits.size());
  law.set(logits);
  const std::vector<double> expected = plain_law(config, logits);
  SamplingConfig uncut = config;
  uncut.top_k = 0, uncut.top_p = 1.0, uncut.greedy = false;
  const std::vector<double> before = plain_law(uncut, logits);
  const auto index_of_top = static_cast<std::size_t>(law.most_likely());
  double sum = 0.0;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    const auto token = static_cast<TokenId>(i);
    // Exponents are rounded to floats: to 6e-8 of what they are, twice.
    const double exponent = std::abs(std::log(before[i] + 1e-300) - std::log(before[index_of_top]));
    ASSERT_NEAR(law.p(token), expected[i], (1e-6 + 2e-7 * exponent) * expected[i] + 1e-37) << "token " << i;
    ASSERT_EQ(law.kept(token),
              expected[i] > 0.0 || (!config.cuts() && !config.greedy && logits[i] > kNoToken));
    if (expected[i] > 0.0) {
      ASSERT_NEAR(law.log_p(token), std::log(expected[i]), 2e-6);
    }
    if (before[i] > 0.0) {
      ASSERT_NEAR(law.log_p_before(token), std::log(before[i]), 2e-6);
    }
    sum += law.p(token);
  }
  EXPECT_NEAR(sum, 1.0, 1e-12);
}

TEST(NextTokenLaw, EqualsPlainLoopsInDouble) {
  for (const std::size_t n : {2, 17, 65, 640})
    for (const double spread : {0.1, 2.0, 12.0}) {
      const std::vector<float> logits = random_logits(n, spread, static_cast<unsigned>(n));
      for (const double temperature : {0.3, 1.0, 1.7})
        for (const std::size_t top_k : {0, 1, 2, 40})
          for (const double top_p : {1.0, 0.9, 0.3, 1e-9}) {
            SCOPED_TRACE(fmt::format("{} tokens, spread {}, T {}, top-k {}, top-p {}", n, spread, temperature,
                                     top_k, top_p));
            expect_law({.temperature = temperature, .top_k = top_k, .top_p = top_p}, logits);
          }
      expect_law({.temperature = 0.7, .greedy = true}, logits);
    }
}

TEST(NextTokenLaw, TiesAreKeptByTopKAndGoByIdInTopP) {
  const std::vector<float> logits = {1.0f, 2.0f, 1.0f, 2.0f, 1.0f, 0.0f};
  for (const std::size_t top_k : {1, 2, 3, 4, 5, 6})
    for (const double top_p : {1.0, 0.2, 0.5, 0.8}) expect_law({.top_k = top_k, .top_p = top_p}, logits);
  NextTokenLaw law({.top_k = 3}, logits.size());
  law.set(logits);
  for (const TokenId kept : {0, 1, 2, 3, 4}) EXPECT_TRUE(law.kept(kept));
  EXPECT_FALSE(law.kept(5));
  NextTokenLaw half({.top_p = 0.01}, logits.size());
  half.set(logits);
  EXPECT_TRUE(half.kept(1));
  EXPECT_FALSE(half.kept(3));
  NextTokenLaw greedy({.greedy = true}, logits.size());
  greedy.set(logits);
  EXPECT_EQ(greedy.draw(kMostNumber), 1);
  EXPECT_EQ(greedy.log_p(1), 0.0);
  EXPECT_EQ(greedy.log_p(3), -std::numeric_limits<double>::infinity());
}

TEST(NextTokenLaw, TokensThatCannotBe) {
  std::vector<float> logits(200, kNoToken);
  logits[70] = -5.0f, logits[130] = -7.0f;
  for (const SamplingConfig& config : {SamplingConfig{}, SamplingConfig{.top_k = 3},
                                       SamplingConfig{.top_p = 0.999}, SamplingConfig{.top_k = 1}}) {
    NextTokenLaw law(config, logits.size());
    law.set(logits);
    EXPECT_EQ(law.draw(0), 70);
    EXPECT_EQ(law.draw(kMostNumber), config.top_k == 1 ? 70 : 130);
    EXPECT_FALSE(law.kept(0));
    EXPECT_EQ(law.log_p(0), -std::numeric_limits<double>::infinity());
    EXPECT_EQ(law.log_p_before(199), -std::numeric_limits<double>::infinity());
    EXPECT_EQ(law.mass_where([](TokenId t) { return t < 70; }), 0.0);
    EXPECT_EQ(law.draw_where([](TokenId t) { return t < 70; }, 5), kEndOfText);
    EXPECT_NEAR(law.mass_where([](TokenId t) { return t <= 130; }), 1.0, 1e-12);
  }
  NextTokenLaw law({}, logits.size());
  EXPECT_THROW(law.set(std::vector<float>(200, kNoToken)), std::invalid_argument);
  EXPECT_THROW(law.set(std::vector<float>(3)), std::invalid_argument);
}

// All mass on one token: the others lie 1e-38 below it and more.
TEST(NextTokenLaw, OneTokenHasAllMass) {
  std::vector<float> logits(300, -100.0f);
  logits[299] = 100.0f;
  NextTokenLaw law({}, logits.size());
  law.set(logits);
  EXPECT_EQ(law.draw(0), 299);
  EXPECT_EQ(law.draw(kMostNumber), 299);
  EXPECT_EQ(law.log_p(299), 0.0);
  EXPECT_EQ(law.log_p(0), -200.0);
}

// Every number gives the token in whose share of [0, 1) it falls.
TEST(NextTokenLaw, DrawsAreTheInverseOfTheDistributionFunction) {
  for (const SamplingConfig& config :
       {SamplingConfig{}, SamplingConfig{.temperature = 0.6, .top_k = 40, .top_p = 0.9}}) {
    const std::vector<float> logits = random_logits(777, 3.0, 5);
    NextTokenLaw law(config, logits.size());
    law.set(logits);
    double below = 0.0;
    for (std::size_t i = 0; i < logits.size(); ++i) {
      const double p = law.p(static_cast<TokenId>(i));
      if (p > 1e-9) {
        for (const double within : {0.001, 0.5, 0.999})
          EXPECT_EQ(law.draw(static_cast<std::uint64_t>((below + within * p) * 0x1.0p64)),
                    static_cast<TokenId>(i));
      }
      below += p;
    }
  }
}

double chi_square_p(std::span<const double> p, std::span<const std::size_t> counts, std::size_t n) {
  double sum = 0.0, rest_p = 0.0, rest = 0.0, cells = -1.0;
  const auto add = [&](double expected, double found) {
    sum += (found - expected) * (found - expected) / expected;
    cells += 1.0;
  };
  for (std::size_t i = 0; i < p.size(); ++i) {
    const double expected = p[i] * static_cast<double>(n);
    if (expected < 10.0)
      rest_p += expected, rest += static_cast<double>(counts[i]);
    else
      add(expected, static_cast<double>(counts[i]));
  }
  if (rest_p >= 10.0) add(rest_p, rest);
  // Wilson and Hilferty's cube root: good to 1e-3 here.
  const double z = (std::cbrt(sum / cells) - (1.0 - 2.0 / (9.0 * cells))) / std::sqrt(2.0 / (9.0 * cells));
  return 0.5 * std::erfc(z / std::sqrt(2.0));
}

// False alarm of each: 1e-4.
TEST(NextTokenLaw, FrequenciesOfDrawsAreTheLaw) {
  const std::size_t n = 40000;
  const std::vector<float> logits = random_logits(300, 2.5, 9);
  for (const SamplingConfig& config :
       {SamplingConfig{}, SamplingConfig{.temperature = 0.8, .top_p = 0.9}, SamplingConfig{.top_k = 20}}) {
    NextTokenLaw law(config, logits.size());
    law.set(logits);
    const auto odd = [](TokenId t) { return t % 2 == 1; };
    std::vector<std::size_t> counts(300), odd_counts(300);
    std::vector<double> p(300), odd_p(300);
    for (std::size_t i = 0; i < 300; ++i) {
      const auto token = static_cast<TokenId>(i);
      p[i] = law.p(token);
      odd_p[i] = odd(token) ? p[i] / law.mass_where(odd) : 0.0;
    }
    for (std::size_t i = 0; i < n; ++i) {
      const std::uint64_t number = uniform64({11, Stream::kInputs}, i, 0);
      ++counts[static_cast<std::size_t>(law.draw(number))];
      ++odd_counts[static_cast<std::size_t>(law.draw_where(odd, number))];
    }
    EXPECT_GT(chi_square_p(p, counts, n), 1e-4);
    EXPECT_GT(chi_square_p(odd_p, odd_counts, n), 1e-4);
    for (std::size_t i = 0; i < 300; ++i)
      if (p[i] == 0.0) {
        EXPECT_EQ(counts[i], 0u);
      }
  }
}

TEST(SamplingConfig, SaysWhatIsWrong) {
  const auto message = [](const SamplingConfig& config) -> std::string {
    try {
      config.validate(10);
      return "";
    } catch (const InputError& error) {
      return error.what();
    }
  };
  EXPECT_EQ(message({}), "");
  EXPECT_EQ(message({.temperature = 0.0}),
            "temperature 0: expected 1e-06 to 1000000; for the most likely token ask for greedy decoding");
  EXPECT_EQ(message({.top_p = 1.5}), "top-p 1.5: expected more than 0 and at most 1");
  EXPECT_EQ(message({.top_p = std::nan("")}), "top-p nan: expected more than 0 and at most 1");
  EXPECT_EQ(message({.stop = {10}}), "stop token 10: expected 0 to d_vocab - 1 = 9");
  EXPECT_EQ(message({.max_tokens = 0}), "0 new tokens: expected at least 1");
}

}  // namespace
}  // namespace deeptail
