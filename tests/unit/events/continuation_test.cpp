// Events on sampled continuations, against all continuations of tiny models.
#include <gtest/gtest.h>

#include <cmath>

#include "core/random.h"
#include "deeptail/continuation.h"
#include "sizes.h"
#include "unit/tiny_texts.h"

namespace deeptail {
namespace {

struct Drawn {
  Inputs inputs;
  std::vector<std::uint64_t> numbers;
  EventInputs all() const { return {inputs.batch(), numbers}; }
};

Drawn draw(const Event& event, std::size_t n, std::uint64_t seed) {
  ThreadPool pool(1);
  const TinyPrompts law;
  return {sample_inputs(law, seed, 0, n, pool), sample_numbers(event, law, seed, 0, n)};
}

struct MeanAndError {
  double mean, error;
};
template <class F>
MeanAndError mean_of(std::size_t n, const F& value) {
  double sum = 0.0, squares = 0.0;
  for (std::size_t i = 0; i < n; ++i) sum += value(i), squares += value(i) * value(i);
  const auto count = static_cast<double>(n);
  return {sum / count, std::sqrt((squares / count - sum * sum / count / count) / count)};
}

// Four standard errors: a false alarm in 16,000 comparisons.
TEST(Continuation, ScoresAndPayoffsHaveTheExactMean) {
  constexpr std::size_t kSteps = 4;
  const std::size_t n = sized(4000, 600);
  for (const bool llama : {false, true}) {
    const TinyModel tiny(llama, 5);
    TinyTruth truth(tiny.model(), tiny_sampling(kSteps));
    auto events = tiny_events();
    events.push_back(tiny_regex_event());
    events.push_back(tiny_end_event());
    for (const TinyEvent& e : events) {
      SCOPED_TRACE(e.name);
      const double p = truth(e);
      const ContinuationEvent event(e.pattern, tiny_sampling(kSteps));
      ThreadPool pool(2);
      const TinyPrompts law;
      const Drawn texts = draw(event, n, 3);
      std::vector<double> scores(n);
      event.scorer(tiny.model(), law, {}, pool)->scores(texts.all(), scores);
      const MeanAndError hits = mean_of(n, [&](std::size_t i) { return scores[i] >= 0.0 ? 1.0 : 0.0; });
      EXPECT_NEAR(hits.mean, p, 4.0 * std::sqrt(p / static_cast<double>(n)) + 4.0 / static_cast<double>(n));

      std::vector<double> nonsense;
      for (std::size_t s = 0; s < event.chances().size(); ++s)
        nonsense.push_back(0.01 + 0.07 * static_cast<double>(s % 5));
      for (const ContinuationEvent& guess :
           {event, event.with_chances(nonsense), event.learnt(tiny.model(), law, {.texts = 64}, pool)}) {
        const ContinuationPayoff paying(guess, 2);
        const auto scorer = paying.scorer(tiny.model(), law, {}, pool);
        scorer->scores(texts.all(), scores);
        const MeanAndError paid =
            mean_of(n, [&](std::size_t i) { return std::exp(scorer->log_payoffs()[i]); });
        // Payoffs have long tails: the standard error of a few hundred says little.
        if (n >= 4000) {
          EXPECT_NEAR(paid.mean, p, 4.0 * paid.error + 1e-9);
        }
      }
    }
  }
}

// A state that the guess takes for hopeless is tried all the same, and an end without anything to find is paid for.
TEST(Continuation, PaysForWhatTheGuessTakesForHopeless) {
  constexpr std::size_t kSteps = 4;
  const std::size_t n = sized(6000, 200);
  const TinyModel tiny(true, 5);
  const TinyPrompts law;
  ThreadPool pool(2);
  const TinyEvent no_d{"matches ^[abc ]*$", tiny_pattern("matches", matches("^[abc ]*$", "test")),
                       [](const std::string& text, auto) { return text.find('d') == std::string::npos; }};
  for (const TinyEvent& e : {tiny_events()[1], no_d}) {
    SCOPED_TRACE(e.name);
    const double p = TinyTruth(tiny.model(), tiny_sampling(kSteps))(e);
    const ContinuationEvent event(e.pattern, tiny_sampling(kSteps));
    for (std::size_t hopeless = 2; hopeless < event.chances().size(); ++hopeless) {
      std::vector<double> chances(event.chances().begin(), event.chances().end());
      for (std::size_t s = 2; s < chances.size(); ++s) chances[s] = s == hopeless ? 1e-12 : 0.1;
      const ContinuationPayoff paying(event.with_chances(chances), 2);
      const auto scorer = paying.scorer(tiny.model(), law, {}, pool);
      const Drawn texts = draw(paying, n, 3);
      std::vector<double> scores(n);
      scorer->scores(texts.all(), scores);
      const MeanAndError paid = mean_of(n, [&](std::size_t i) { return std::exp(scorer->log_payoffs()[i]); });
      if (n >= 6000) {
        EXPECT_NEAR(paid.mean, p, 4.0 * paid.error);
      }
      if (n >= 6000) {
        EXPECT_LT(paid.error, 0.2 * p);
      }
    }
  }
}

// Of texts that are held: changed ones score as anew, and all that is drawn from a crossing on is at the level again.
TEST(Continuation, HeldTextsScoreAsAnewAndCrossAgain) {
  constexpr std::size_t kSteps = 6, n = 80;
  const TinyModel tiny(true, 5);
  const TinyPrompts law;
  const ContinuationEvent event(tiny_events()[1].pattern, tiny_sampling(kSteps));
  ThreadPool pool(2);
  const auto scorer = event.scorer(tiny.model(), law, {.max_held = n}, pool),
             other = event.scorer(tiny.model(), law, {.max_held = n}, pool);
  Drawn texts = draw(event, n, 1);
  std::vector<double> scores(n), again(n), anew(n);
  scorer->scores(texts.all(), scores);
  std::vector<double> sorted = scores;
  std::sort(sorted.begin(), sorted.end());
  const double level = sorted[n / 2];
  scorer->hold(texts.all(), {});
  std::vector<std::uint32_t> held(n), first(n);
  std::size_t crossed = 0;
  for (std::uint32_t i = 0; i < n; ++i) {
    held[i] = i;
    first[i] = texts.inputs.lengths[i];
    const Crossing at = scorer->crossing(i, level);
    EXPECT_EQ(at.share > 0.0, scores[i] >= level);
    if (at.share == 0.0) continue;
    ++crossed;
    for (std::size_t t = at.number; t < kSteps; ++t) {
      const double u = unit_double(uniform64({9, Stream::kMoves}, i, static_cast<std::uint32_t>(t)));
      texts.numbers[i * kSteps + t] =
          static_cast<std::uint64_t>(std::ldexp(t == at.number ? u * at.share : u, 64));
    }
  }
  EXPECT_GE(crossed, n / 2);
  const Proposals proposals{texts.all(), held, first};
  other->scores(texts.all(), anew);
  scorer->rescore(proposals, again);
  EXPECT_EQ(again, anew);
  for (std::size_t i = 0; i < n; ++i) EXPECT_EQ(anew[i] >= level, scores[i] >= level) << i;
  std::vector<std::uint8_t> accept(n);
  scorer->decide(level, proposals, accept);
  for (std::size_t i = 0; i < n; ++i) EXPECT_EQ(accept[i] != 0, anew[i] >= level);
}

}  // namespace
}  // namespace deeptail
