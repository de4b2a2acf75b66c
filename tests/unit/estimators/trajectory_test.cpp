// trajectory on tiny models whose continuations are enumerated.
#include "deeptail/trajectory.h"

#include <gtest/gtest.h>

#include "estimators/text_paths.h"
#include "sizes.h"
#include "unit/tiny_texts.h"

namespace deeptail {
namespace {

// Frozen guesses and nonsense: the mean is the truth, within four standard errors.
TEST(Trajectory, IsUnbiasedForAnyChances) {
  constexpr std::size_t kSteps = 4;
  const std::size_t runs = sized<std::size_t>(250, 10);
  const TinyPrompts law;
  ThreadPool pool(1);
  for (const bool llama : {false, true}) {
    const TinyModel tiny(llama, 6);
    TinyTruth truth(tiny.model(), tiny_sampling(kSteps));
    auto events = tiny_events();
    events.push_back(tiny_regex_event());
    events.push_back(tiny_end_event());
    for (const TinyEvent& e : events) {
      const double p = truth(e);
      const ContinuationEvent event(e.pattern, tiny_sampling(kSteps));
      std::vector<double> nonsense;
      for (std::size_t s = 0; s < event.chances().size(); ++s)
        nonsense.push_back(0.01 + 0.07 * static_cast<double>((3 * s) % 5));
      for (const ContinuationEvent& guess : {event, event.with_chances(nonsense)}) {
        double sum = 0.0, squares = 0.0;
        TextPaths paths(tiny.model(), law, guess, 16, pool, [](const Work&) { return true; });
        for (std::size_t r = 0; r < runs; ++r) {
          const double found = std::exp(
              run_trajectories(paths, {.n_paths = 16, .killed = 1 + r % 4}, derived_seed(5, r)).log_p);
          sum += found;
          squares += found * found;
        }
        const auto n = static_cast<double>(runs);
        const double mean = sum / n, error = std::sqrt((squares / n - mean * mean) / n);
        EXPECT_NEAR(mean, p, 4.0 * error + 1e-9) << e.name << " " << llama;
      }
    }
  }
}

TEST(Trajectory, AnswersWithAnIntervalForAnyThreads) {
  constexpr std::size_t kSteps = 4;
  const TinyPrompts law;
  const TinyModel tiny(true, 6);
  const TinyEvent e = tiny_events()[1];
  const double truth = std::log(TinyTruth(tiny.model(), tiny_sampling(kSteps))(e));
  const ContinuationEvent event(e.pattern, tiny_sampling(kSteps));
  std::size_t held = 0;
  const std::size_t runs = sized<std::size_t>(20, 2);
  for (std::uint64_t seed = 1; seed <= runs; ++seed) {
    ThreadPool pool(1 + seed % 3);
    const Estimate found = trajectory(tiny.model(), law, event, {.budget = 1500.0, .seed = seed}, pool);
    held += found.log_low <= truth && truth <= found.log_high;
    EXPECT_GT(found.cost.flops, 0.0);
    for (const Trigger& t : found.triggers)
      EXPECT_NE(tiny_token_texts().continuation(t.tokens, t.answer).find("abca"), std::string::npos);
    if (seed > 2) continue;
    ThreadPool other(7);
    EXPECT_EQ(trajectory(tiny.model(), law, event, {.budget = 1500.0, .seed = seed}, other).log_p,
              found.log_p);
  }
  EXPECT_GE(held, runs * 8 / 10);
}

TEST(Trajectory, StopsAndRefuses) {
  const TinyPrompts law;
  const TinyModel tiny(false, 6);
  ThreadPool pool(1);
  const ContinuationEvent event(tiny_events()[1].pattern, tiny_sampling(4));
  const Estimate stopped =
      trajectory(tiny.model(), law, event, {.budget = 1000.0}, pool, [](const Progress&) { return false; });
  EXPECT_EQ(stopped.status, Status::kBudgetSpent);
  EXPECT_EQ(stopped.guarantee, Guarantee::kConsistent);
  SamplingConfig greedy = tiny_sampling(4);
  greedy.greedy = true;
  EXPECT_THROW(trajectory(tiny.model(), law, ContinuationEvent(tiny_events()[1].pattern, greedy), {}, pool),
               InputError);
  EXPECT_THROW(trajectory(tiny.model(), law, event, {.budget = 1.0}, pool), InputError);
  EXPECT_THROW(trajectory(tiny.model(), law, event, {.replicas = 1}, pool), InputError);
  EXPECT_THROW(trajectory(tiny.model(), law, event, {.paths = 1}, pool), InputError);
}

}  // namespace
}  // namespace deeptail
