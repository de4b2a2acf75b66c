// Splitting by a user's functions: right answers, batches of one shape, stopping.
#include "deeptail/split.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <mutex>
#include <set>

#include "chain_law.h"

namespace deeptail {
namespace {

// All of ten numbers besides the input are at least 0.4: 0.6^10 = 0.00605.
constexpr std::size_t kNumbers = 10;
const double kLogTruth = 10.0 * std::log(0.6);

bool count_large(const ScoredRows& rows, std::span<double> out) {
  for (std::size_t i = 0; i < out.size(); ++i) {
    double large = -static_cast<double>(kNumbers);
    for (std::size_t j = 0; j < kNumbers; ++j) large += unit_double(rows.numbers[i * kNumbers + j]) >= 0.4;
    out[i] = large;
  }
  return true;
}

CalledScoresConfig counting_scores(BatchScore score = count_large) {
  return {.score = std::move(score), .batch = 64, .numbers = kNumbers};
}

Estimate split_with(CalledScores& scores, std::size_t threads, double budget = 2e4, std::uint64_t seed = 1) {
  const ChainLaw law(6, 5);
  ThreadPool pool(threads);
  return split(law, scores, {.budget = budget, .seed = seed}, pool);
}

TEST(Split, FindsAKnownProbabilityWithoutAModel) {
  double sum = 0.0;
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    CalledScores scores(counting_scores());
    const Estimate e = split_with(scores, 2, 2e4, seed);
    EXPECT_EQ(e.guarantee, Guarantee::kUnbiased);
    EXPECT_LE(e.cost.forward_equivalents, 3e4);
    sum += std::exp(e.log_p - kLogTruth) / 4.0;
  }
  EXPECT_NEAR(sum, 1.0, 0.35);  // each has a relative standard deviation of 0.15 or so
}

TEST(Split, GivesTheSameForAnyBatchAndThreads) {
  CalledScores one(counting_scores()), other({.score = count_large, .batch = 1000, .numbers = kNumbers});
  const Estimate a = split_with(one, 1), b = split_with(other, 3);
  EXPECT_EQ(a.log_p, b.log_p);
  EXPECT_EQ(a.log_high, b.log_high);
  EXPECT_EQ(a.replica_log_p, b.replica_log_p);
  EXPECT_EQ(a.cost.flops, b.cost.flops);
}

TEST(Split, AsksOneThreadAtATimeForBatchesOfOneShape) {
  std::mutex busy;
  std::set<std::pair<std::size_t, std::size_t>> shapes;
  CalledScores scores(counting_scores([&](const ScoredRows& rows, std::span<double> out) {
    const std::unique_lock alone(busy, std::try_to_lock);
    EXPECT_TRUE(alone.owns_lock());
    shapes.emplace(rows.inputs.size(), rows.inputs.length);
    return count_large(rows, out);
  }));
  split_with(scores, 3, 4000);
  EXPECT_EQ(shapes, (std::set<std::pair<std::size_t, std::size_t>>{{64, 6}}));
  const CalledScores::Counts counts = scores.counts();
  EXPECT_EQ(counts.batches * 64, counts.rows + counts.padded);
}

TEST(Split, AsksForSmallerBatchesWhereItMay) {
  std::set<std::size_t> shapes;
  CalledScores one({.score =
                        [&](const ScoredRows&rows, std::span<double> out) {
                          shapes.insert(rows.inputs.size());
                          return count_large(rows, out);
                        },
                    .batch = 256,
                    .smaller = {64, 16},
                    .numbers = kNumbers}),
      other({.score = count_large, .batch = 256, .numbers = kNumbers});
  EXPECT_EQ(split_with(one, 2, 4000).replica_log_p, split_with(other, 2, 4000).replica_log_p);
  EXPECT_EQ(shapes, (std::set<std::size_t>{16, 64, 256}));
  EXPECT_LT(one.counts().padded, other.counts().padded / 2);
}

// Event k is that all numbers are at least 0.4, but for k of them.
bool count_large_but(const ScoredRows& rows, std::span<double> out) {
  count_large(rows, out);
  for (std::size_t i = 0; i < out.size(); ++i) out[i] += rows.which[i];
  return true;
}

TEST(Split, ManyEventsShareBatchesAndGiveWhatEachGivesAlone) {
  const ChainLaw law(6, 5);
  const std::vector<std::string> names = {"all", "all but one", "all but two"};
  std::vector<Estimate> together(names.size());
  std::size_t mixed = 0;  // batches with rows of several events: how many, threads decide
  CalledScores scores(counting_scores([&](const ScoredRows& rows, std::span<double> out) {
    mixed += std::any_of(rows.which.begin(), rows.which.end(),
                         [&](std::uint32_t event) { return event != rows.which.front(); });
    return count_large_but(rows, out);
  }));
  split_many(law, scores, names, {.budget = 4000},
             {.on_estimate = [&](std::size_t i, Estimate e) { together[i] = std::move(e); }});
  for (std::size_t k = 0; k < names.size(); ++k) {
    CalledScores alone(counting_scores([k](const ScoredRows& rows, std::span<double> out) {
      count_large(rows, out);
      for (double& s : out) s += static_cast<double>(k);
      return true;
    }));
    EXPECT_EQ(together[k].replica_log_p, split_with(alone, 2, 4000).replica_log_p);
    EXPECT_EQ(together[k].event, names[k]);
  }
  EXPECT_GT(mixed, 0u);
}

TEST(Split, ManyEventsStopTogether) {
  const ChainLaw law(6, 5);
  CalledScores scores(counting_scores([](const auto&, auto) -> bool { throw std::domain_error("mine"); }));
  const std::vector<std::string> names(5, "one");
  EXPECT_THROW(split_many(law, scores, names, {.budget = 4000}, {.on_estimate = [](auto, auto) {}}),
               std::domain_error);
}

TEST(Split, StopsWhenTheScoreSaysSoAndKeepsWhatIsFinished) {
  CalledScores whole(counting_scores());
  split_with(whole, 2);
  const std::uint64_t batches = whole.counts().batches;
  for (const std::uint64_t last : {std::uint64_t{0}, batches / 4, batches / 2}) {
    std::uint64_t asked = 0;
    CalledScores scores(counting_scores([&](const ScoredRows& rows, std::span<double> out) {
      return asked++ < last && count_large(rows, out);
    }));
    const Estimate e = split_with(scores, 2);
    EXPECT_TRUE(scores.gave_up());
    EXPECT_EQ(asked, last + 1);
    EXPECT_FALSE(e.warnings.empty());
    EXPECT_EQ(e.guarantee, Guarantee::kConsistent);
  }
}

TEST(Split, ThrowsWhatTheScoreThrows) {
  CalledScores scores(counting_scores([](const auto&, auto) -> bool { throw std::domain_error("mine"); }));
  EXPECT_THROW(split_with(scores, 2), std::domain_error);
}

TEST(Split, AnExactScoreDecidesNearALevel) {
  const auto rough = [](const ScoredRows& rows, std::span<double> out) {
    count_large(rows, out);
    for (double& s : out) s += 0.3 * std::sin(7.0 * s);
    return true;
  };
  CalledScores scores({.score = rough, .exact = count_large, .near = 0.3, .numbers = kNumbers});
  const Estimate e = split_with(scores, 2, 4e4);
  EXPECT_GT(scores.counts().exact_rows, 0u);
  EXPECT_EQ(scores.counts().farther, 0u);
  EXPECT_NEAR(e.log_p, kLogTruth, 0.6);
}

TEST(Split, RefusesSettingsThatMakeNoSense) {
  EXPECT_THROW(CalledScores({.score = {}}), InputError);
  EXPECT_THROW(CalledScores({.score = count_large, .batch = 0}), InputError);
  EXPECT_THROW(CalledScores({.score = count_large, .batch = 8, .smaller = {8}}), InputError);
  EXPECT_THROW(CalledScores({.score = count_large, .near = -1.0}), InputError);
}

// States are numbers 0 to 9 coins; those that are at least 9 are the event: 11 / 1024 of ten coins.
struct CoinStates {
  std::vector<int> heads = {};
  std::size_t dropped = 0;

  StateFunctions functions() {
    StateFunctions out;
    const auto coins = [](std::uint64_t number) { return std::popcount(number & 1023); };
    out.sample = [this, coins](std::uint64_t seed, std::span<std::int64_t> states) {
      for (std::size_t i = 0; i < states.size(); ++i) {
        states[i] = static_cast<std::int64_t>(heads.size());
        heads.push_back(coins(uniform64({seed, Stream::kInputs}, i, 0)));
      }
      return true;
    };
    out.mutate = [this](std::span<const std::int64_t> states, std::uint64_t seed,
                        std::span<std::int64_t> proposals) {
      for (std::size_t i = 0; i < states.size(); ++i) {
        const std::uint64_t u = uniform64({seed, Stream::kMoves}, i, 0);
        const int before = heads[static_cast<std::size_t>(states[i])];
        // One of the ten coins, thrown again.
        const int without = before - (static_cast<int>(u % 10) < before ? 1 : 0);
        proposals[i] = static_cast<std::int64_t>(heads.size());
        heads.push_back(without + static_cast<int>(u >> 63));
      }
      return true;
    };
    out.score = [this](std::span<const std::int64_t> states, std::span<double> scores) {
      for (std::size_t i = 0; i < states.size(); ++i)
        scores[i] = heads[static_cast<std::size_t>(states[i])] - 9.0;
      return true;
    };
    out.drop = [this](std::span<const std::int64_t> states) {
      dropped += states.size();
      return true;
    };
    return out;
  }
};

TEST(SplitStates, FindsAKnownProbabilityAndLeavesNoStateBehind) {
  CoinStates coins;
  const StatesEstimate found = split_states(coins.functions(), {.budget = 5e4, .seed = 3});
  EXPECT_NEAR(found.estimate.log_p, std::log(11.0 / 1024.0), 0.25);
  ASSERT_EQ(found.states.size(), 3u);
  for (const std::int64_t state : found.states) EXPECT_GE(coins.heads[static_cast<std::size_t>(state)], 9);
  EXPECT_EQ(coins.dropped + found.states.size(), coins.heads.size());
}

TEST(SplitStates, Stops) {
  CoinStates coins;
  const StatesEstimate found =
      split_states(coins.functions(), {.budget = 5e4}, [](const Progress& p) { return p.done < 20000; });
  EXPECT_EQ(found.estimate.guarantee, Guarantee::kConsistent);
}

}  // namespace
}  // namespace deeptail
