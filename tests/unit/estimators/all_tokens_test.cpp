// All tokens at once against enumeration: the laws' ratios, the mean of every row, threads, and stopping.
#include "deeptail/all_tokens.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <numeric>

#include "estimators/vocabulary/learn_plants.h"
#include "sizes.h"
#include "unit/estimators/few_tokens.h"

namespace deeptail {
namespace {

// A single token, a pair of neighbours, one further apart, a token anywhere, a triple.
std::vector<PlantChance> some_chances() {
  return {{{.last = 1013}, 0.3},
          {{.last = 2047, .other = 395}, 0.25},
          {{.last = 310, .other = 2047, .group = 1}, 0.2},
          {{.other = 1013, .group = 1}, 0.15},
          {{.last = 1013, .other = 16, .third = 2047}, 0.1}};
}

TEST(AllTokens, ThePlantedLawIsWhatPlantingGives) {
  const Distribution dist = few_tokens(4);
  const PlantSites sites(dist);
  const std::vector<PlantChance> chances = some_chances();
  const PlantedLaw law(sites, chances);
  const std::vector<TokenId> inputs = all_inputs_of(dist);
  const std::size_t length = dist.length(), n = inputs.size() / length;
  const auto input = [&](std::size_t i) { return std::span(inputs).subspan(i * length, length); };
  std::map<std::vector<TokenId>, double> planted;
  for (const auto& [tokens, chance] : chances)
    for (const std::size_t position : sites.groups[tokens.group].positions)
      for (std::size_t i = 0; i < n; ++i) {
        std::vector<TokenId> made(input(i).begin(), input(i).end());
        if (tokens.last != kNothing) made[sites.last] = tokens.last;
        if (tokens.other != kNothing) made[position] = tokens.other;
        if (tokens.third != kNothing) made[sites.third] = tokens.third;
        planted[made] += chance * std::exp(dist.log_probability(input(i))) /
                         static_cast<double>(sites.groups[tokens.group].positions.size());
      }
  for (std::size_t i = 0; i < n; ++i) {
    const double expected =
        planted[{input(i).begin(), input(i).end()}] / std::exp(dist.log_probability(input(i)));
    ASSERT_NEAR(law.ratio(input(i)), expected, 1e-9 * (1.0 + expected)) << i;
  }
}

// The mean weight of a token's draws, block by block, is its probability.
TEST(AllTokens, WeightsMakeUpForWhatIsPlanted) {
  const Distribution dist = few_tokens(4);
  const PlantSites sites(dist);
  const SharedLaw law(sites, some_chances(), 7, 0);
  std::map<TokenId, double> mean;  // of inputs by their third-last token: known without a model
  constexpr std::size_t kBlocks = sized(400, 4);
  std::vector<TokenId> tokens(SharedLaw::kBlock * dist.length());
  for (std::size_t block = 0; block < kBlocks; ++block) {
    law.draw(block, tokens);
    for (std::size_t i = 0; i < SharedLaw::kBlock; ++i) {
      const auto row = std::span<const TokenId>(tokens).subspan(i * dist.length(), dist.length());
      mean[row[sites.third]] += law.weight(row) / static_cast<double>(kBlocks * SharedLaw::kBlock);
    }
  }
  if (kBlocks < 400) return;
  const TokenTable& table = dist.table(sites.third);
  for (std::size_t i = 0; i < table.size(); ++i) {
    const double p = table.probability(i);  // weights are below 8: within 6 standard deviations, 4e-8 in all
    EXPECT_NEAR(mean[table.ids()[i]], p,
                6.0 * std::sqrt(8.0 * p / static_cast<double>(kBlocks * SharedLaw::kBlock)));
  }
}

TEST(AllTokens, AHitDoesNotSpeakForItself) {
  const Distribution dist = few_tokens(4);
  const PlantSites sites(dist);
  const std::vector<PlantChance> given = {{{.last = 16}, 0.5}, {{.last = 395}, 0.5}};
  std::vector<SharedHit> hits;
  const auto add = [&](std::vector<TokenId> tokens) {
    hits.push_back({1.0, 0, tokens[4], tokens[3], tokens[2], tokens});
  };
  for (const TokenId third : {16, 69, 310, 395, 1013}) add({0, 16, third, 310, 2047});
  const std::vector<PlantChance> learnt = learnt_plants(sites, given, hits);
  const auto chance = [&](const PlantedTokens& tokens) {
    for (const PlantChance& p : learnt)
      if (p.tokens == tokens) return p.chance;
    return 0.0;
  };
  EXPECT_GT(chance({.last = 2047, .other = 310}), 0.4);
  EXPECT_LT(chance({.last = 2047, .other = 310, .third = 1013}), 1e-3);
  EXPECT_NEAR(chance({.last = 16}), 0.2, 1e-6);
}

TEST(AllTokens, EveryRowsMeanOverSeedsIsRight) {
  if (sized(false, true)) return;  // the test of threads runs the same code
  const Distribution dist = few_tokens(5);
  ThreadPool pool(2);
  const std::vector<double> truth = exact_probabilities(dist, pool);
  constexpr std::size_t kSeeds = 8;
  std::map<TokenId, std::vector<double>> ratios;
  std::map<std::string, std::size_t> by;
  std::size_t covered = 0, rows = 0;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const AllTokens all = estimate_all(dt_1l(), dist, {.budget = 1.2e4, .seed = seed, .above = 1e-14}, pool);
    for (const Estimate& e : all.rows) {
      const double q = truth[static_cast<std::size_t>(e.target.front())];
      ASSERT_GT(q, 0.0);
      ratios[e.target.front()].push_back(std::exp(e.log_p) / q);
      ++by[e.method];
      ++rows;
      covered += e.log_low <= std::log(q) && std::log(q) <= e.log_high;
      EXPECT_EQ(e.guarantee, Guarantee::kUnbiased);
    }
  }
  EXPECT_GT(by["mc"], 0u);
  EXPECT_GT(by["shared"], 0u);
  std::size_t tokens = 0;
  for (const auto& [token, found] : ratios) {
    double sum = 0.0, squares = 0.0;
    for (const double r : found) sum += r, squares += r * r;
    const double mean = sum / kSeeds, error = std::sqrt((squares / kSeeds - mean * mean) / (kSeeds - 1.0));
    if (found.size() < kSeeds) continue;  // seldom seen: too few for a normal law
    ++tokens;
    EXPECT_LT(std::abs(mean - 1.0), 7.0 * error + 1e-9) << token;  // t with 7 degrees: 2e-4 each
  }
  EXPECT_GT(tokens, 8u);
  EXPECT_GE(static_cast<double>(covered), 0.9 * static_cast<double>(rows));
}

TEST(AllTokens, AreTheSameForAnyNumberOfThreads) {
  const Distribution dist = few_tokens(4);
  const auto with = [&](std::size_t threads) {
    ThreadPool pool(threads);
    return estimate_all(dt_1l(), dist, {.budget = 1e4, .seed = 3, .above = sized(1e-14, 1e-5)}, pool);
  };
  const AllTokens one = with(1);
  ASSERT_FALSE(one.rows.empty());
  for (const std::size_t threads : {7, 2}) {
    if (sized(false, true) && threads == 2) continue;
    const AllTokens more = with(threads);
    EXPECT_EQ(one.counts, more.counts);
    ASSERT_EQ(one.rows.size(), more.rows.size());
    for (std::size_t i = 0; i < one.rows.size(); ++i) {
      EXPECT_EQ(one.rows[i].target, more.rows[i].target);
      EXPECT_EQ(one.rows[i].log_p, more.rows[i].log_p);
      EXPECT_EQ(one.rows[i].log_high, more.rows[i].log_high);
    }
  }
}

TEST(AllTokens, StoppedTheyTellWhatWasDrawn) {
  const Distribution dist = few_tokens(4);
  ThreadPool pool(2);
  for (const std::uint64_t until : {3000, 7000, 0}) {
    if (sized(false, true) && until != 3000) continue;
    const AllTokens all =
        estimate_all(dt_1l(), dist, {.budget = 1e4}, pool, [&](const Progress& p) { return p.done < until; });
    EXPECT_TRUE(all.stopped);
    EXPECT_GT(all.samples, 0u);
    EXPECT_FALSE(all.rows.empty());
    EXPECT_LE(all.cost.forward_equivalents, 9900.0);
  }
}

// Every token that the shared draws saw has a row, also those that tokensplit was to be asked about alone.
TEST(AllTokens, StoppedInTheLastStepEveryTokenHasARow) {
  if (sized(false, true)) return;  // the test above stops, too
  const Distribution dist = few_tokens(6);
  ThreadPool pool(2);
  const AllTokensConfig config{.budget = 3.8e5, .above = 1e-16};  // enough for one to be asked about alone
  // During the draws that count, and in the last step, which has the last 3e4.
  for (const double until : {1.2e5, 3.51e5}) {
    const AllTokens all = estimate_all(
        dt_1l(), dist, config, pool, [&](const Progress& p) { return static_cast<double>(p.done) < until; });
    EXPECT_TRUE(all.stopped);
    EXPECT_EQ(all.rows.size() + all.outside.size() + all.unseen, dist.d_vocab);
    std::size_t told = 0;
    for (const auto* rows : {&all.rows, &all.outside})
      for (const Estimate& e : *rows) {
        EXPECT_NE(e.method, "tokensplit");
        told += !e.warnings.empty() && e.warnings.back().starts_with("stopped before tokensplit");
      }
    EXPECT_EQ(told, 1u) << until;
  }
}

TEST(AllTokens, WhatIsKnownOfAnyToken) {
  const Distribution dist = few_tokens(4);
  ThreadPool pool(2);
  const std::vector<double> truth = exact_probabilities(dist, pool);
  const AllTokens all = estimate_all(dt_1l(), dist, {.budget = 1e4, .above = 0.05}, pool);
  ASSERT_FALSE(all.outside.empty());
  EXPECT_EQ(all.rows.size() + all.outside.size() + all.unseen, dist.d_vocab);
  for (const auto* rows : {&all.rows, &all.outside})
    for (const Estimate& e : *rows) EXPECT_EQ(estimate_of(all, e.target.front()).log_p, e.log_p);
  for (TokenId token = 0; token < 4096; ++token) {
    const Estimate e = estimate_of(all, token);
    EXPECT_EQ(e.target, std::vector<TokenId>{token});
    if (e.status != Status::kNotReachedUpperBound) continue;
    EXPECT_EQ(e.log_p, -std::numeric_limits<double>::infinity());
    EXPECT_EQ(e.log_high, all.log_unseen_high);
    EXPECT_LT(truth[static_cast<std::size_t>(token)], std::exp(e.log_high)) << token;
  }
}

TEST(AllTokens, TheMethodAnswersWhateverElseIsAsked) {
  const Distribution dist = few_tokens(4);
  const TokenTables law(dist);
  ThreadPool pool(2);
  const Method method = make_method("all-tokens", {{"budget", "1e4", ""}, {"above", "1e-3", ""}});
  std::vector<NextToken> events;
  for (const TokenId token : {18, 69, 310, 4000}) events.emplace_back(Target({token}, dt_1l().head()));
  std::vector<MethodTask> tasks;
  for (const NextToken& event : events) tasks.push_back({Question(dt_1l(), law, event), 5});
  std::vector<Estimate> together(tasks.size());
  const Answers answers{.on_estimate = [&](std::size_t i, Estimate e) { together[i] = std::move(e); }};
  run_method_many(method, tasks, answers, pool);
  for (std::size_t i = 0; i < sized(tasks.size(), std::size_t{1}); ++i) {
    const Estimate alone = run_method(method, tasks[i].question, 5, pool);
    EXPECT_EQ(alone.log_p, together[i].log_p);
    EXPECT_EQ(alone.log_high, together[i].log_high);
    EXPECT_EQ(alone.method, "all-tokens");
    EXPECT_EQ(alone.settings, together[i].settings);
    EXPECT_DOUBLE_EQ(alone.cost.forward_equivalents, 4.0 * together[i].cost.forward_equivalents);
  }
  EXPECT_EQ(together[3].status, Status::kNotReachedUpperBound);
  EXPECT_EQ(together[3].event, "says 4000");
  const Estimate cut = run_method(method, tasks[0].question, 5, pool, [](const Progress&) { return false; });
  EXPECT_TRUE(cut.warnings.back().starts_with("ended after")) << cut.warnings.back();
  // One that cannot be answered is refused, with all that would share its draws.
  const Distribution short_dist = few_tokens(1);
  const TokenTables short_law(short_dist);
  const MethodTask bad{Question(dt_1l(), short_law, events[0]), 5};
  std::string why;
  run_method_many(method, {&bad, 1},
                  {.on_estimate = {}, .on_refusal = [&](std::size_t, const std::string& w) { why = w; }},
                  pool);
  EXPECT_EQ(why, "few: fewer than two positions vary; ask about single tokens");
}

TEST(AllTokens, AScanThatDoesNotFitIsRefusedBeforehand) {
  Distribution dist = few_tokens(2);
  dist.d_vocab = 1 << 21;
  std::vector<TokenId> ids(dist.d_vocab);
  std::iota(ids.begin(), ids.end(), 0);
  const std::size_t n = ids.size();
  dist.tables[1] =
      TokenTable("all", std::move(ids), std::vector<double>(n, 1.0 / static_cast<double>(n)), "all");
  ThreadPool pool(1);
  try {
    estimate_all(dt_1l(), dist, {.budget = 1e12}, pool);
    FAIL();
  } catch (const InputError& e) {
    const std::string why = e.what();
    EXPECT_TRUE(why.starts_with("estimating all 2097152 tokens at once on few would take ")) << why;
    EXPECT_NE(why.find("ask about single tokens"), std::string::npos) << why;
  }
}

TEST(AllTokens, WhatMakesNoSenseIsRefused) {
  EXPECT_NO_THROW(AllTokensConfig{}.validate());
  EXPECT_THROW(AllTokensConfig{.budget = 100}.validate(), InputError);
  EXPECT_THROW(AllTokensConfig{.budget = std::nan("")}.validate(), InputError);
  EXPECT_THROW(AllTokensConfig{.above = 0.0}.validate(), InputError);
  EXPECT_THROW((AllTokensConfig{.above = 1e-5, .below = 1e-6}.validate()), InputError);
  EXPECT_THROW(AllTokensConfig{.below = 2.0}.validate(), InputError);
  ThreadPool pool(1);
  EXPECT_THROW(estimate_all(dt_1l(), few_tokens(1), {.budget = 1e4}, pool), InputError);
}

}  // namespace
}  // namespace deeptail
