// The moves of tokensplit on a model small enough to enumerate: 4 free positions of 4 tokens, 256 states.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "core/random.h"
#include "core/statistics.h"
#include "estimators/tokensplit/particles.h"
#include "events/next_token.h"
#include "sizes.h"
#include "unit/estimators/counting_model.h"
#include "unit/estimators/fixed_moves.h"
#include "unit/estimators/propose_tokens.h"

namespace deeptail {
namespace {

constexpr std::size_t kFree = 4, kStates = 256;
constexpr std::array<double, 4> kProbabilities = {0.4, 0.3, 0.2, 0.1};

const CountingModel& toy() {
  static const CountingModel model(kFree, kProbabilities, 8);
  return model;
}

std::vector<TokenId> tokens_of(std::size_t state) {
  std::vector<TokenId> tokens;
  for (std::size_t i = 0; i < kFree; ++i, state /= 4) tokens.push_back(static_cast<TokenId>(state % 4));
  tokens.push_back(CountingModel::kEnd);
  return tokens;
}

std::size_t state_of(std::span<const TokenId> tokens) {
  std::size_t state = 0;
  for (std::size_t i = kFree; i-- > 0;) state = state * 4 + static_cast<std::size_t>(tokens[i]);
  return state;
}

double prior_of(std::size_t state) { return std::exp(toy().dist().log_probability(tokens_of(state))); }

MoveSettings settings() {
  return {.n_moves = 8,
          .cumulative = cumulative_of(std::vector<double>{1.0, 2.0, 0.5, 3.0, 0.0}),
          .block = 2,
          .block_share = 0.3,
          .suffix_share = 0.2};
}

// Chance that exactly this set of positions (bits) is drawn anew.
std::vector<double> chance_of_sets(const MoveSettings& s) {
  const std::vector<double> w = {1.0 / 6.5, 2.0 / 6.5, 0.5 / 6.5, 3.0 / 6.5};
  std::vector<double> chance(16, 0.0);
  for (std::size_t count = 1; count <= kFree; ++count)  // suffixes: the last `count` free positions
    chance[(0xfu << (kFree - count)) & 0xfu] += s.suffix_share / kFree;
  for (std::size_t i = 0; i < kFree; ++i) {
    chance[1u << i] += (1 - s.suffix_share - s.block_share) * w[i];
    for (std::size_t j = 0; j < kFree; ++j) chance[(1u << i) | (1u << j)] += s.block_share * w[i] * w[j];
  }
  return chance;
}

// Proposal probabilities from x: [256].
std::vector<double> proposals_from(std::size_t x, const MoveSettings& s) {
  const std::vector<double> chance = chance_of_sets(s);
  const auto at = tokens_of(x);
  std::vector<double> out(kStates, 0.0);
  for (std::size_t y = 0; y < kStates; ++y) {
    const auto to = tokens_of(y);
    for (std::size_t set = 1; set < 16; ++set) {
      double p = chance[set];
      for (std::size_t i = 0; i < kFree; ++i) {
        if (set >> i & 1u)
          p *= kProbabilities[static_cast<std::size_t>(to[i])];
        else if (to[i] != at[i])
          p = 0.0;
      }
      out[y] += p;
    }
  }
  return out;
}

std::vector<double> enumerated_scores() {
  std::vector<TokenId> all;
  for (std::size_t s = 0; s < kStates; ++s) {
    const auto tokens = tokens_of(s);
    all.insert(all.end(), tokens.begin(), tokens.end());
  }
  ThreadPool pool(1);
  AlignedVector<float> resid(kStates * 4);
  final_residuals(toy().model(), {all, kFree + 1}, pool, {resid.data(), 4});
  std::vector<Margin> found(kStates);
  margins(toy().model().head(), toy().target(), kStates, {resid.data(), 4}, pool, found);
  std::vector<double> scores;
  for (const Margin& m : found) scores.push_back(score_of(m));
  return scores;
}

// p-value of counts against expected probabilities; states of probability 0 must not occur.
double p_value(const std::vector<double>& counts, const std::vector<double>& probabilities) {
  const double n = std::accumulate(counts.begin(), counts.end(), 0.0);
  double chi2 = 0.0, rest_seen = 0.0, rest = 0.0;
  int cells = 0;
  const auto add = [&](double seen, double expected) {
    chi2 += (seen - expected) * (seen - expected) / expected;
    ++cells;
  };
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (probabilities[i] == 0.0) {
      EXPECT_EQ(counts[i], 0.0) << "state " << i;
    }
    if (n * probabilities[i] >= 10.0) {
      add(counts[i], n * probabilities[i]);
    } else {
      rest_seen += counts[i];
      rest += n * probabilities[i];
    }
  }
  if (rest > 0.0) add(rest_seen, rest);
  return chi_squared_tail(chi2, cells - 1);
}

TEST(TokenMoves, LeaveTheConditionedLawInvariantExactly) {
  const std::vector<double> scores = enumerated_scores();
  for (const double level : {-40.0, -10.0, -1.0}) {
    std::vector<double> law(kStates, 0.0), after(kStates, 0.0);
    double mass = 0.0;
    for (std::size_t x = 0; x < kStates; ++x) mass += law[x] = scores[x] >= level ? prior_of(x) : 0.0;
    ASSERT_GT(mass, 0.0);
    for (std::size_t x = 0; x < kStates; ++x) {
      if (law[x] == 0.0) continue;
      const std::vector<double> to = proposals_from(x, settings());
      for (std::size_t y = 0; y < kStates; ++y) after[scores[y] >= level ? y : x] += law[x] * to[y];
    }
    for (std::size_t x = 0; x < kStates; ++x) EXPECT_NEAR(after[x], law[x], 1e-14) << "state " << x;
  }
}

TEST(TokenMoves, ProposeWithTheStatedChances) {
  const MoveSettings s = settings();
  const auto free = free_positions(toy().dist());
  const std::size_t from = state_of(std::vector<TokenId>{1, 0, 3, 2});
  std::vector<double> counts(kStates, 0.0);
  for (std::uint64_t i = 0; i < 100000; ++i) {
    std::vector<TokenId> tokens = tokens_of(from);
    const TokenMove move = propose_tokens(toy().dist(), free, s, {7, i}, tokens);
    EXPECT_EQ(tokens.back(), CountingModel::kEnd);
    if (!move.changed) {
      EXPECT_EQ(state_of(tokens), from);
    }
    counts[state_of(tokens)] += 1.0;
  }
  EXPECT_GT(p_value(counts, proposals_from(from, s)), 1e-4);  // false alarm 1e-4
}

TEST(TokenMoves, ParticlesThatHaveTheLawKeepIt) {
  const std::vector<double> scores = enumerated_scores();
  constexpr double kLevel = -10.0;
  std::vector<double> law(kStates, 0.0);
  double mass = 0.0;
  for (std::size_t x = 0; x < kStates; ++x) mass += law[x] = scores[x] >= kLevel ? prior_of(x) : 0.0;
  for (double& p : law) p /= mass;

  constexpr std::size_t kParticles = sized(20000, 4000);
  ThreadPool pool(2);
  const TokenTables tables(toy().dist());
  const NextToken event(toy().target());
  FixedMoves policy(settings(), 5);
  InputParticles particles({toy().model(), tables, event}, kParticles, policy, pool);
  // Independent draws from the law: of many samples of the prior, those at or above the level.
  particles.sample(8 * kParticles, 11);
  std::vector<double> found(particles.size());
  particles.scores(found);
  std::vector<std::uint32_t> keep;
  for (std::uint32_t i = 0; i < found.size() && keep.size() < kParticles; ++i)
    if (found[i] >= kLevel) keep.push_back(i);
  ASSERT_EQ(keep.size(), kParticles);
  particles.resample(keep);
  const MoveStats stats = particles.move(kLevel, 0, 13);
  std::vector<double> counts(kStates, 0.0);
  for (std::size_t i = 0; i < kParticles; ++i) counts[state_of(particles.inputs().sequence(i))] += 1.0;
  EXPECT_GT(p_value(counts, law), 1e-4);  // false alarm 1e-4
  EXPECT_GT(stats.acceptance(), 0.1);
}

}  // namespace
}  // namespace deeptail
