// Laws that particles are drawn from instead of the prior: their inputs, and exact weights, by enumeration.
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "core/random.h"
#include "estimators/tokensplit/candidates.h"
#include "estimators/tokensplit/strata.h"

namespace deeptail {
namespace {

Distribution small_prior() {
  Distribution dist;
  dist.name = "small";
  dist.d_vocab = 8;
  dist.tables = {TokenTable("a", {0, 1, 2}, {0.7, 0.25, 0.05}, "a"),
                 TokenTable("b", {3, 4}, {0.99, 0.01}, "b"), TokenTable("end", {7}, {1.0}, "end")};
  dist.positions = {0, 0, 1, 2};
  return dist;
}

// A pair, a pair further off, a last token alone, another alone, three together, two of them.
PlantList small_plants() {
  return {.plants = {{{1, 2}, {2, 4}},
                     {{0, 1}, {2, 4}},
                     {{2, 4}},
                     {{0, 2}},
                     {{0, 2}, {1, 1}, {2, 3}},
                     {{0, 2}, {1, 1}}},
          .chances = TokenTable("plants", {0, 1, 2, 3, 4, 5}, {0.4, 0.2, 0.2, 0.1, 0.06, 0.04}, "plants")};
}

std::vector<std::vector<TokenId>> all_inputs(const Distribution& dist) {
  std::vector<std::vector<TokenId>> all(1);
  for (std::size_t position = 0; position < dist.length(); ++position) {
    std::vector<std::vector<TokenId>> longer;
    for (const auto& input : all)
      for (const TokenId id : dist.table(position).ids()) {
        longer.push_back(input);
        longer.back().push_back(id);
      }
    all = std::move(longer);
  }
  return all;
}

// The planted law's chances: every plant over every input of the tables.
std::map<std::vector<TokenId>, double> planted_law(const Distribution& tables, const PlantList& list) {
  std::map<std::vector<TokenId>, double> law;
  for (std::size_t i = 0; i < list.size(); ++i)
    for (const auto& own : all_inputs(tables)) {
      std::vector<TokenId> input = own;
      list.plants[i].write(input);
      law[input] += list.chances.probability(i) * std::exp(tables.log_probability(own));
    }
  return law;
}

TEST(Mixture, WeightsArePriorOverMixture) {
  const Distribution prior = small_prior();
  const auto mixture = tilted(prior, small_plants());
  ASSERT_EQ(mixture->size(), 2u);
  auto planted = planted_law(prior, small_plants());
  double sum = 0.0;
  for (const auto& input : all_inputs(prior)) {
    const double flat = std::exp(mixture->component(0).tables.log_probability(input));
    const double mixed = mixture->component(0).share * flat + mixture->component(1).share * planted[input];
    const double p = std::exp(prior.log_probability(input));
    EXPECT_NEAR(mixture->log_weight(input), std::log(p / mixed), 1e-12);
    EXPECT_LE(mixture->log_weight(input),
              mixture->log_largest_ratio(0) - std::log(mixture->component(0).share) + 1e-12);
    sum += mixed * std::exp(mixture->log_weight(input));
  }
  EXPECT_NEAR(sum, 1.0, 1e-12);
  EXPECT_TRUE(std::isinf(mixture->log_largest_ratio(1)));
}

TEST(Mixture, WithoutPlantsThereIsTheFlattenedLawAlone) {
  const auto mixture = tilted(small_prior(), {});
  ASSERT_EQ(mixture->size(), 1u);
  EXPECT_EQ(mixture->component(0).share, 1.0);
  for (const auto& input : all_inputs(small_prior()))
    EXPECT_NEAR(mixture->log_weight(input),
                small_prior().log_probability(input) - mixture->component(0).tables.log_probability(input),
                1e-12);
}

// 1e5 inputs against the enumerated law: chi-squared of 17 cells below 50, false alarm 2e-5.
TEST(PlantedTables, InputsFollowTheLaw) {
  const Distribution prior = small_prior();
  const PlantedTables law(prior, small_plants());
  ThreadPool pool(2);
  constexpr std::size_t kInputs = 100000;
  const Inputs inputs = sample_inputs(law, 5, 0, kInputs, pool);
  std::map<std::vector<TokenId>, double> counts;
  for (std::size_t i = 0; i < kInputs; ++i) {
    const auto tokens = inputs.sequence(i);
    counts[{tokens.begin(), tokens.end()}] += 1.0;
  }
  double chi = 0.0;
  for (const auto& [input, p] : planted_law(prior, small_plants())) {
    const double expected = p * kInputs;
    chi += (counts[input] - expected) * (counts[input] - expected) / expected;
    counts.erase(input);
  }
  EXPECT_TRUE(counts.empty());  // nothing that the law leaves out
  EXPECT_LT(chi, 50.0);
}

TEST(PlantedTables, RedrawingIsMakingFromTheNewNumbers) {
  const PlantedTables law(small_prior(), small_plants());
  ThreadPool pool(1);
  constexpr std::size_t kInputs = 500;
  const std::size_t n_parts = law.facts().n_parts;
  EXPECT_EQ(law.free_parts(), (std::vector<std::size_t>{0, 1, 2, 4}));
  std::vector<std::uint64_t> parts(kInputs * n_parts);
  sample_parts(law, 1, 0, pool, parts);
  Inputs inputs;
  law.make(parts, inputs, pool);
  for (std::uint32_t round = 0; round < 20; ++round) {
    std::vector<Redraw> redraws;
    for (std::uint32_t i = 0; i < kInputs; ++i)
      for (std::uint32_t k = 0; k < 2; ++k) {
        const auto part =
            static_cast<std::uint32_t>(uniform64({9, Stream::kMoves}, i, 4 * round + k) % n_parts);
        redraws.push_back({i, part, uniform64({9, Stream::kMoves}, i, 4 * round + 2 + k)});
      }
    const Inputs before = inputs;
    std::vector<std::uint32_t> first(kInputs);
    law.redraw(redraws, parts, inputs, first, pool);
    Inputs made;
    law.make(parts, made, pool);
    ASSERT_EQ(inputs.tokens, made.tokens);
    for (std::size_t i = 0; i < kInputs; ++i)
      for (std::size_t p = 0; p < inputs.max_length; ++p)
        if (before.sequence(i)[p] != inputs.sequence(i)[p]) {
          EXPECT_LE(first[i], p);
        }
  }
}

TEST(Candidates, PlantsShareChancesOverTheirPositions) {
  const Distribution prior = small_prior();
  const std::vector<ScanGroup> groups = {{{1}, &prior.table(1)}, {{0, 1}, &prior.table(0)}};
  std::vector<Candidate> candidates = {{.last = 4, .other = 2, .group = 1},
                                       {.last = 4, .other = 2, .group = 0}};
  candidates[0].log_worth = std::log(0.5);
  candidates[1].log_worth = std::log(0.5);
  const PlantList list = plants_of(candidates, groups, 2);
  ASSERT_EQ(list.size(), 2u);
  EXPECT_NEAR(list.chances.probability(0), 0.25, 1e-12);  // at position 0
  EXPECT_NEAR(list.chances.probability(1), 0.75, 1e-12);  // at position 1, by both
}

}  // namespace
}  // namespace deeptail
