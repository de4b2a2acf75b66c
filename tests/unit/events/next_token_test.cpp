// The next token as an event: its scorer against margins of one sequence at a time, on inputs of unequal
// lengths.
#include <gtest/gtest.h>

#include "deeptail/event.h"
#include "events/next_token.h"
#include "unit/chain_law.h"
#include "unit/estimators/counting_model.h"

namespace deeptail {
namespace {

constexpr std::size_t kLongest = 9;

const CountingModel& counting() {
  static const CountingModel model(kLongest - 1, {0.25, 0.25, 0.25, 0.25}, 15);
  return model;
}

double score_alone(std::span<const TokenId> tokens, const Target& target) {
  ThreadPool pool(1);
  const std::size_t d = counting().model().config().d_model;
  AlignedVector<float> resid(d);
  final_residuals(counting().model(), {tokens, tokens.size()}, pool, {resid.data(), d});
  Margin margin{};
  margins(counting().model().head(), target, 1, {resid.data(), d}, pool, {&margin, 1});
  return score_of(margin);
}

TEST(NextToken, ScoresAndDecidesAsOneByOneForAnyThreads) {
  const ChainLaw law(kLongest, CountingModel::kVocab);
  const NextToken event(counting().target());
  const std::size_t n = 150;
  for (const std::size_t threads : {1, 2, 7}) {
    ThreadPool pool(threads);
    const auto scorer = event.scorer(counting().model(), law, {.max_held = n}, pool);
    Inputs now = sample_inputs(law, 1, 0, n, pool);
    std::vector<double> scores(n);
    EXPECT_EQ(scorer->scores({now.batch()}, scores).forwards, n);
    for (std::size_t i = 0; i < n; ++i)
      EXPECT_EQ(scores[i], score_alone(now.sequence(i), counting().target()));

    scorer->hold({now.batch()}, scorer->hints());
    for (std::uint64_t step = 0; step < 3; ++step) {
      const Inputs to = sample_inputs(law, 2 + step, 0, n, pool);
      std::vector<std::uint32_t> held(n), first(n, 0);
      for (std::uint32_t i = 0; i < n; ++i) held[i] = i;
      std::vector<std::uint8_t> accept(n);
      const double level = scores[10 + step];  // a score that occurs
      const Work work = scorer->decide(level, {{to.batch()}, held, first}, accept);
      EXPECT_EQ(work.rescored, n);
      EXPECT_GT(work.flops, 0.0);
      for (std::size_t i = 0; i < n; ++i) {
        const double alone = score_alone(to.sequence(i), counting().target());
        EXPECT_EQ(accept[i] != 0, alone >= level) << i;
        if (!accept[i]) continue;
        scores[i] = alone;
        std::copy_n(to.batch().row(i), kLongest, now.row(i).begin());
        now.lengths[i] = to.lengths[i];
      }
    }
  }
}

// What is held is copied, moved, and scored again without whole passes: the same scores to the bit.
TEST(NextToken, KeepsWhatItHolds) {
  const ChainLaw law(kLongest, CountingModel::kVocab);
  const NextToken event(counting().target());
  ASSERT_TRUE(event.keeps_held());
  const std::size_t n = 60;
  for (const std::size_t threads : {1, 2, 7}) {
    ThreadPool pool(threads);
    const auto scorer = event.scorer(counting().model(), law, {.max_held = n}, pool);
    const Inputs drawn = sample_inputs(law, 1, 0, n / 3, pool);
    Inputs now;
    now.resize(n, drawn.max_length);
    const auto copy = [&](const Inputs& from, std::size_t i, std::size_t to) {
      std::copy_n(from.batch().row(i), kLongest, now.row(to).begin());
      now.lengths[to] = from.lengths[i];
    };
    for (std::size_t i = 0; i < n; ++i) copy(drawn, i * 7 % (n / 3), i);
    const std::size_t distinct = distinct_rows(now.batch()).first.size();
    EXPECT_LE(distinct, n / 3);
    EXPECT_EQ(scorer->hold({now.batch()}, {}).forwards, distinct);
    for (std::uint64_t step = 0; step < 3; ++step) {
      const Inputs to = sample_inputs(law, 2 + step, 0, n, pool);
      std::vector<std::uint32_t> held(n), first(n, 0), parents(n);
      for (std::uint32_t i = 0; i < n; ++i) held[i] = i, parents[i] = i < 20 ? i / 4 : i;
      std::vector<std::uint8_t> accept(n);
      scorer->decide(-1e30, {{to.batch().part(0, 10)}, std::span(held).first(10), std::span(first).first(10)},
                     std::span(accept).first(10));
      for (std::size_t i = 0; i < 10; ++i) copy(to, i, i);
      scorer->copy_held(parents);
      const Inputs before = now;
      for (std::size_t i = 0; i < n; ++i) copy(before, parents[i], i);
      scorer->take_hints(scorer->hints());
      std::vector<double> scores(n);
      const Work work = scorer->held_scores(0, std::span(scores).first(n / 2));
      EXPECT_EQ(work.forwards, 0u);
      EXPECT_EQ(work.rescored, n / 2);
      scorer->held_scores(n / 2, std::span(scores).subspan(n / 2));
      for (std::size_t i = 0; i < n; ++i)
        EXPECT_EQ(scores[i], score_alone(now.sequence(i), counting().target())) << i;
    }
  }
}

TEST(NextToken, DistinctRows) {
  const std::vector<TokenId> tokens = {1, 2, 3, 4, 1, 2, 1, 2, 3, 4, 3, 5};
  const DistinctRows rows = distinct_rows({tokens, 2});
  EXPECT_EQ(rows.first, (std::vector<std::uint32_t>{0, 1, 5}));
  EXPECT_EQ(rows.same_as, (std::vector<std::uint32_t>{0, 1, 0, 0, 1, 2}));
}

// All inputs give equal logits to 0 and 1: the smaller id is said, and the other one's score is just below 0.
TEST(NextToken, ALostTieIsNoEvent) {
  const ChainLaw law(kLongest, CountingModel::kVocab);
  ThreadPool pool(1);
  const Inputs some = sample_inputs(law, 1, 0, 20, pool);
  const NextToken event(Target({1}, counting().model().head()));
  const auto scorer = event.scorer(counting().model(), law, {.max_held = 20}, pool);
  std::vector<double> scores(20);
  scorer->scores({some.batch()}, scores);
  std::vector<std::uint32_t> held(20), first(20, 0);
  for (std::uint32_t i = 0; i < 20; ++i) held[i] = i;
  std::vector<std::uint8_t> accept(20);
  for (const double level : {0.0, -std::numeric_limits<double>::denorm_min()}) {
    scorer->hold({some.batch()}, {});
    scorer->decide(level, {{some.batch()}, held, first}, accept);
    for (std::size_t i = 0; i < 20; ++i) EXPECT_EQ(accept[i] != 0, scores[i] >= level);
  }
  std::size_t ties = 0;
  for (const double score : scores) {
    EXPECT_LT(score, 0.0);
    ties += score == -std::numeric_limits<double>::denorm_min();
  }
  EXPECT_GT(ties, 0u);
  EXPECT_EQ(event.text(), "says 1");
}

}  // namespace
}  // namespace deeptail
