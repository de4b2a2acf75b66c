// Splitting under laws and events of a user's own: a chain with inputs of unequal lengths, and answers that
// are drawn.
#include "estimators/tokensplit/particles.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "deeptail/estimators.h"
#include "sizes.h"
#include "unit/chain_law.h"
#include "unit/estimators/counting_model.h"

namespace deeptail {
namespace {

constexpr std::size_t kLongest = 13;

// The law of (length, sum of the values) of ChainLaw, without the end token.
std::map<std::pair<int, int>, double> chain_sums() {
  std::map<std::pair<int, int>, double> done;
  std::map<std::pair<TokenId, int>, double> open;  // (last token, sum)
  for (TokenId t = 0; t < ChainLaw::kEnd; ++t) open[{t, t}] = ChainLaw::probability(-1, t);
  for (int length = 1; length < static_cast<int>(kLongest); ++length) {
    std::map<std::pair<TokenId, int>, double> next;
    const bool last = length + 1 == static_cast<int>(kLongest);
    for (const auto& [at, p] : open) {
      done[{length, at.second}] += p * (last ? 1.0 : ChainLaw::probability(at.first, ChainLaw::kEnd));
      for (TokenId t = 0; t < ChainLaw::kEnd; ++t)
        next[{t, at.second + t}] += p * ChainLaw::probability(at.first, t);
    }
    open = std::move(next);
  }
  return done;
}

// Mean of p / truth over seeds within 5 standard errors.
void expect_unbiased(const Transformer& model, const Event& event, double truth) {
  const ChainLaw law(kLongest, CountingModel::kVocab);
  ThreadPool pool(2);
  double sum = 0.0, squares = 0.0;
  constexpr int kSeeds = sized(12, 2);
  for (int seed = 1; seed <= kSeeds; ++seed) {
    const Estimate e =
        tokensplit(model, law, event, {.budget = 8000, .seed = static_cast<std::uint64_t>(seed)}, pool);
    EXPECT_EQ(e.guarantee, Guarantee::kUnbiased);
    const double ratio = std::exp(e.log_p) / truth;
    sum += ratio;
    squares += ratio * ratio;
    for (const Trigger& t : e.triggers) EXPECT_EQ(t.tokens.back(), ChainLaw::kEnd);
    EXPECT_FALSE(e.triggers.empty());
    EXPECT_TRUE(e.positions.empty());
  }
  if (kSeeds < 12) return;
  const double mean = sum / kSeeds, error = std::sqrt((squares / kSeeds - mean * mean) / (kSeeds - 1.0));
  EXPECT_LT(std::abs(mean - 1.0), 5 * error)
      << mean << " +- " << error;  // false alarm 4e-4 (t with 11 degrees)
  EXPECT_LT(error, 0.15);
}

// The model says the target iff the mean value, the end token counted as 0, is above 35.5 / 13.
TEST(InputParticles, AChainOfUnequalLengths) {
  const CountingModel toy(kLongest - 1, {0.25, 0.25, 0.25, 0.25}, 36);
  double truth = 0.0;
  for (const auto& [at, p] : chain_sums())
    if (at.second * static_cast<int>(kLongest) > 35.5 * (at.first + 1)) truth += p;
  ASSERT_LT(truth, 1e-4);
  expect_unbiased(toy.model(), NextToken(toy.target()), truth);
}

TEST(InputParticles, TheSameForAnyNumberOfThreads) {
  const CountingModel toy(kLongest - 1, {0.25, 0.25, 0.25, 0.25}, 34);
  const ChainLaw law(kLongest, CountingModel::kVocab);
  std::string first;
  for (const std::size_t threads : {1, 2, 7}) {
    ThreadPool pool(threads);
    Estimate e = tokensplit(toy.model(), law, NextToken(toy.target()), {.budget = 3000, .replicas = 3}, pool);
    e.cost.seconds = 0.0;
    if (first.empty()) first = to_json(e);
    EXPECT_EQ(to_json(e), first) << threads << " threads";
  }
}

// An answer that is drawn: the sum of the values and two dice with faces 0 to 3 reaches a threshold.
CallbackEvent dice_event(int threshold) {
  return {"the dice",
          [threshold](const EventInputs& in, std::span<double> out) {
            for (std::size_t i = 0; i < out.size(); ++i) {
              out[i] = -threshold;
              for (const TokenId t : in.inputs.sequence(i)) out[i] += t == ChainLaw::kEnd ? 0 : t;
              for (std::size_t k = 0; k < 2; ++k) out[i] += static_cast<double>(in.numbers[2 * i + k] >> 62);
            }
          },
          2};
}

TEST(InputParticles, AnAnswerThatIsDrawnWithNumbersOfItsOwn) {
  constexpr int kThreshold = 39;
  const CountingModel toy(kLongest - 1, {0.25, 0.25, 0.25, 0.25}, 36);  // any model
  double truth = 0.0;
  for (const auto& [at, p] : chain_sums())
    for (int dice = 0; dice < 16; ++dice)
      if (at.second + dice / 4 + dice % 4 >= kThreshold) truth += p / 16.0;
  ASSERT_LT(truth, 1e-4);
  expect_unbiased(toy.model(), dice_event(kThreshold), truth);
}

}  // namespace
}  // namespace deeptail
