// Events on sampled continuations, against all continuations of tiny models.
#include <gtest/gtest.h>

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
      for (std::size_t s = 0; s < event.chances().size(); ++s) nonsense.push_back(0.01 + 0.07 * static_cast<double>(s % 5));
      for (const ContinuationEvent& guess :
           {event, event.with_chances(nonsense), event.learnt(tiny.model(), law, {.texts = 64}, pool)}) {
        const ContinuationPayoff paying(guess, 2);
        const auto scorer = paying.scorer(tiny.model(), law, {}, pool);
        scorer->scores(texts.all(), scores);
        const MeanAndError paid = mean_of(n, [&](std::size_t i) { return std::exp(scorer->log_payoffs()[i]); });
        // Payoffs have long tails: the standard error of a few hundred says little.
        if (n >= 4000) EXPECT_NEAR(paid.mean, p, 4.0 * paid.error + 1e-9);
      }
    }
  }
}

}  // namespace
}  // namespace deeptail
