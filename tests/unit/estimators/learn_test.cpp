// What replicas learn from each other: which tokens decide, what nobody may learn from itself, and the weights.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "estimators/tokensplit/learnt_laws.h"
#include "unit/estimators/counting_model.h"

namespace deeptail {
namespace {

// Values 3 are rare, and six tokens must sum to 13 or more.
const CountingModel& counting() {
  static const CountingModel model(6, {0.6, 0.3, 0.08, 0.02}, 13);
  return model;
}

struct Asked {
  TokenTables law{counting().dist()};
  NextToken event{counting().target()};
  CpuPlace place{{.model = counting().model(), .law = law, .event = event}};
};

TriggerPool pool_of(const std::vector<std::vector<TokenId>>& inputs, double log_part) {
  TriggerPool out;
  for (const auto& tokens : inputs)
    out.append({.margin = 0.1, .log_part = log_part, .tokens = tokens, .answer = {}});
  return out;
}

TEST(Learn, LessonsOfARunDoNotDependOnOthers) {
  const Asked asked;
  ThreadPool pool(1);
  const TriggerPool one = pool_of({{3, 3, 3, 3, 1, 0, 4}, {3, 3, 3, 2, 2, 0, 4}}, -9.0);
  const TriggerPool few = pool_of({{3, 3, 3, 3, 3, 3, 4}}, -7.0);
  const TriggerPool many =
      pool_of({{0, 1, 3, 3, 3, 3, 4}, {1, 3, 3, 3, 3, 3, 4}, {2, 2, 3, 3, 3, 2, 4}}, -8.0);
  const auto lessons_beside = [&](const TriggerPool& other) {
    const TriggerPool runs[] = {other, one};
    std::vector<Lesson> out = lessons_of(asked.place, runs, 1e12, 5, pool).all;
    std::erase_if(out, [](const Lesson& lesson) { return lesson.run == 0; });
    return out;
  };
  const std::vector<Lesson> a = lessons_beside(few), b = lessons_beside(many);
  ASSERT_EQ(a.size(), 2u);
  ASSERT_EQ(b.size(), 2u);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_TRUE(a[i].tokens == b[i].tokens);
    EXPECT_FALSE(a[i].tokens.empty());
    EXPECT_EQ(a[i].share, b[i].share);
    EXPECT_EQ(a[i].log_part, b[i].log_part);
  }
}

TEST(Learn, NoRunLearnsFromItself) {
  const std::vector<Lesson> lessons = {{.tokens = {{1, 3}, {2, 3}}, .run = 0, .share = 1.0, .log_part = -5.0},
                                       {.tokens = {{4, 3}}, .run = 1, .share = 1.0, .log_part = -9.0}};
  EXPECT_EQ(candidates_of(lessons).likely.size(), 3u);
  EXPECT_EQ(candidates_of(lessons, 1).likely.size(), 2u);
  ASSERT_EQ(candidates_of(lessons, 0).all().size(), 1u);
  EXPECT_TRUE(candidates_of(lessons, 0).all().front() == (Plant{{4, 3}}));
}

TEST(Learn, ChancesAreThoseOfInputsWithThePlant) {
  const Asked asked;
  ThreadPool pool(1);
  const Plant none{{0, 0}}, all{{0, 3}, {1, 3}, {2, 3}};
  const PlantChances chances = chances_with(asked.place, {none, all}, 1e12, 5, pool);
  // Three more tokens must sum to 4: their chance is 0.10, of 128 tries.
  EXPECT_EQ(chances.tries, 128u);
  EXPECT_EQ(chances_with(asked.place, {none, all}, 0.0, 5, pool).tries, 32u);
  EXPECT_NEAR(chances.of.at(all), 0.104, 0.1);
  EXPECT_GT(chances.of.at(all), 0.0);
  EXPECT_EQ(chances.of.at(none), 0.0);
  const PlantWorths worths = worths_of({.likely = {none, all}, .further = {}}, chances, counting().dist());
  ASSERT_EQ(worths.size(), 1u);
  EXPECT_NEAR(worths.at(all), std::pow(0.02, 3.0) * std::sqrt(chances.of.at(all)), 1e-12);
}

TEST(Learn, EveryChoiceOfTokensIsACandidate) {
  const std::vector<Lesson> lessons = {
      {.tokens = {{5, 3}, {1, 3}, {2, 3}}, .run = 0, .share = 1.0, .log_part = -5.0}};
  const PlantCandidates found = candidates_of(lessons);
  EXPECT_EQ(found.likely.size(), 3u);
  // Hits of one ancestor agree on a token that the event need not have: what it needs is tried without it.
  EXPECT_EQ(std::count(found.further.begin(), found.further.end(), (Plant{{1, 3}, {2, 3}})), 1);
}

TEST(Learn, TokensOfDifferentHitsArePaired) {
  const std::vector<Lesson> lessons = {{.tokens = {{1, 3}}, .run = 0, .share = 1.0, .log_part = -5.0},
                                       {.tokens = {{2, 3}}, .run = 1, .share = 1.0, .log_part = -6.0},
                                       {.tokens = {{2, 2}}, .run = 2, .share = 1.0, .log_part = -6.0}};
  const std::vector<Plant> further = candidates_of(lessons).further;
  EXPECT_EQ(further.size(), 2u);  // not the two tokens of one position
  EXPECT_EQ(std::count(further.begin(), further.end(), (Plant{{1, 3}, {2, 3}})), 1);
  EXPECT_TRUE(candidates_of(lessons, 0).further.empty());
}

TEST(Learn, WhatOnlyComesNearIsTakenFromTheLikelyPairsAlone) {
  const Plant single{{0, 3}}, pair{{0, 3}, {1, 3}}, other{{1, 3}, {2, 3}}, far{{3, 3}, {4, 3}};
  const PlantChances chances{.of = {{single, 1e-3}, {pair, 1e-3}, {other, 1e-3}, {far, 0.0}}, .tries = 128};
  const PlantWorths worths =
      worths_of({.likely = {single, pair, far}, .further = {other}}, chances, counting().dist());
  ASSERT_EQ(worths.size(), 1u);
  EXPECT_TRUE(worths.begin()->first == pair);
}

TEST(Learn, NearHitsHaveOneTokenThatRaisesTheMargin) {
  const Asked asked;
  ThreadPool pool(1);
  const std::vector<std::vector<TokenId>> hits = {{3, 3, 3, 2, 2, 0, 4}, {3, 3, 3, 3, 0, 1, 4}};
  const NearHits near = near_hits(asked.place, pool_of(hits, -9.0), 1.0, 1e12, pool);
  ASSERT_FALSE(near.hits.empty());
  EXPECT_GT(near.work.flops, 0.0);
  EXPECT_NEAR(near.hits.log_sum(), std::log(2.0) - 9.0, 1e-12);
  for (const TriggerPool::Entry& entry : near.hits.entries()) {
    std::size_t least = entry.tokens.size();
    for (const auto& hit : hits) {
      std::size_t differ = 0;
      for (std::size_t i = 0; i < hit.size(); ++i) {
        differ += hit[i] != entry.tokens[i];
        if (i != 4 && i != 5 && hit[i] != entry.tokens[i])
          differ = hit.size();  // the last free positions alone
      }
      least = std::min(least, differ);
    }
    EXPECT_LE(least, 1u);          // margins of pool_of are made up: a hit itself may be above its own
    EXPECT_GT(entry.margin, 0.1);  // what pool_of says of hits
  }
  EXPECT_TRUE(near_hits(asked.place, pool_of(hits, -9.0), 1.0, 0.0, pool).hits.empty());
  EXPECT_TRUE(near_hits(asked.place, TriggerPool{}, 1.0, 1e12, pool).hits.empty());
}

TEST(Learn, AChanceDoesNotDependOnPlantsBesideIt) {
  const Asked asked;
  ThreadPool pool(1);
  const Plant plant{{0, 3}, {1, 3}, {2, 3}};
  std::set<Plant> many = {plant};
  for (TokenId a = 0; a < 4; ++a)
    for (TokenId b = 0; b < 4; ++b)
      for (TokenId c = 0; c < 4; ++c) many.insert(Plant{{3, a}, {4, b}, {5, c}});
  for (const double flops : {0.0, 1e6, 1e7, 1e12}) {
    const PlantChances alone = chances_with(asked.place, {plant}, flops, 5, pool);
    const PlantChances beside = chances_with(asked.place, many, flops, 5, pool);
    EXPECT_EQ(alone.tries, beside.tries);
    EXPECT_EQ(alone.of.at(plant), beside.of.at(plant));
  }
}

TEST(Learn, PartsAreWeighedByTheNewMixture) {
  const Distribution& prior = counting().dist();
  const PlantList scanned = plants_by({{Plant{{5, 3}}, 1.0}});
  const auto before = tilted(prior, std::optional(scanned));
  const auto now = tilted(prior, scanned, {{Plant{{0, 3}, {1, 3}}, 1.0}});
  ASSERT_EQ(now->size(), 3u);
  const std::vector<TokenId> with = {3, 3, 3, 3, 1, 0, 4}, without = {0, 1, 3, 3, 3, 3, 4};
  Replicas replicas{.runs = std::vector<SplittingRun>(1), .triggers = {pool_of({with, without}, -9.0)}};
  weigh_again(replicas, 0, *before, *now, 1);
  double sum = 0.0;
  for (const auto& tokens : {with, without})
    sum += now->component(1).share * std::exp(-9.0 + now->log_weight(tokens) - before->log_weight(tokens));
  EXPECT_NEAR(std::exp(replicas.runs[0].log_p), sum, 1e-12 * sum);
  EXPECT_LT(now->log_weight(with), before->log_weight(with) - 3.0);  // 0.2 / 0.02^2 = 500 times as often
}

}  // namespace
}  // namespace deeptail
