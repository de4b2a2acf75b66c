// Estimates of patterns in sampled texts, against all texts of tiny models.
#include "deeptail/payoff.h"

#include <gtest/gtest.h>

#include "deeptail/methods.h"
#include "sizes.h"
#include "statistical/tiny_questions.h"

namespace deeptail {
namespace {

constexpr std::size_t kSteps = 4;

struct Runs {
  double mean = 0.0, error = 0.0;
  std::size_t covered = 0, n = 0;
};

// estimate: (seed) -> Estimate.
template <class F>
Runs over_seeds(std::size_t n, double truth, const F& estimate) {
  Runs runs{.n = n};
  double squares = 0.0;
  for (std::size_t seed = 1; seed <= n; ++seed) {
    const Estimate e = estimate(seed);
    const double p = std::exp(e.log_p);
    runs.mean += p / static_cast<double>(n);
    squares += p * p / static_cast<double>(n);
    runs.covered += std::exp(e.log_low) <= truth && truth <= std::exp(e.log_high);
  }
  runs.error = std::sqrt((squares - runs.mean * runs.mean) / static_cast<double>(n - 1));
  return runs;
}

class PayoffTest : public ::testing::Test {
 protected:
  TinyModel tiny_{true, 5};
  TinyPrompts law_;
  ThreadPool pool_{1};
  TinyTruth truth_{tiny_.model(), tiny_sampling(kSteps)};
};

// Four standard errors, and coverage that 95 % intervals miss once in ten thousand.
TEST_F(PayoffTest, PlainMeansAndLevelsAreUnbiased) {
  const std::size_t n = sized<std::size_t>(40, 2);
  auto events = tiny_events();
  events.push_back(tiny_regex_event());
  for (const TinyEvent& e : events)
    for (const PayoffLevels levels : {PayoffLevels::kNone, PayoffLevels::kAlways}) {
      SCOPED_TRACE(fmt::format("{}, levels {}", e.name, name_of(levels)));
      const ContinuationEvent event(e.pattern, tiny_sampling(kSteps));
      const double p = truth_(e);
      const Runs runs = over_seeds(n, p, [&](std::uint64_t seed) {
        return payoff(tiny_.model(), law_, event,
                      {.budget = 300, .branches = 2, .levels = levels, .seed = seed}, pool_);
      });
      if (n < 10) continue;
      EXPECT_NEAR(runs.mean, p, 4.0 * runs.error + 1e-12);
      EXPECT_GE(runs.covered, n - n / 5) << runs.covered;
    }
}

// One text in fifty pays, and few of those pay most: an interval that went by the one or two that were drawn would be too
// low in one seed of seven.
TEST_F(PayoffTest, FewTextsThatPaySayLittleOfOthers) {
  const std::size_t n = sized<std::size_t>(60, 2);
  const TinyLaws laws(tiny_.model());
  const TinyLaw& said = laws.all()[3];
  ASSERT_EQ(said.name, "language model");
  const TinyEvent end = tiny_end_event();
  const ContinuationEvent event(end.pattern, tiny_sampling(kQuestionSteps));
  const std::vector<TinyQuestion> asked = {
      {.name = end.name,
       .event = std::make_shared<const ContinuationEvent>(event),
       .happens = [&](const std::string& text, auto, std::span<const TokenId> s) {
         return end.happens(text, s);
       }}};
  double p = 0.0;
  for (const auto& [tokens, chance] : said.inputs) p += chance * TinyAnswers(tiny_.model(), asked)(tokens)[0];
  const Runs runs = over_seeds(n, p, [&](std::uint64_t seed) {
    return payoff(tiny_.model(), *said.law, event,
                  {.budget = 500, .levels = PayoffLevels::kNone, .seed = seed}, pool_);
  });
  EXPECT_GE(runs.covered, n - n / 10) << runs.covered;
}

TEST_F(PayoffTest, SplittingOnTextsIsUnbiased) {
  const std::size_t n = sized<std::size_t>(24, 2);
  for (const TinyEvent& e : tiny_events()) {
    SCOPED_TRACE(e.name);
    const ContinuationEvent event(e.pattern, tiny_sampling(kSteps));
    const double p = truth_(e);
    const Runs runs = over_seeds(n, p, [&](std::uint64_t seed) {
      return static_split(tiny_.model(), law_, event, {.budget = 3000, .seed = seed}, pool_);
    });
    if (n < 10) continue;
    EXPECT_NEAR(runs.mean, p, 4.0 * runs.error + 1e-12);
    EXPECT_GE(runs.covered, n - n / 4) << runs.covered;
  }
}

TEST_F(PayoffTest, ThreadsDoNotMatter) {
  const TinyEvent e = tiny_events()[1];
  const ContinuationEvent event(e.pattern, tiny_sampling(kSteps));
  for (const char* method : {"payoff", "static", "auto", "mc"}) {
    std::vector<std::string> found;
    for (const std::size_t threads : {1, 2, 7}) {
      ThreadPool pool(threads);
      Estimate estimate =
          run_method(make_method(method, {{"budget", "1000", ""}}), {tiny_.model(), law_, event}, 3, pool);
      estimate.cost.seconds = 0.0;
      found.push_back(to_json(estimate));
    }
    EXPECT_EQ(found[0], found[1]) << method;
    EXPECT_EQ(found[0], found[2]) << method;
  }
}

TEST_F(PayoffTest, RefusesWhatItCannotAnswer) {
  SamplingConfig greedy = tiny_sampling(kSteps);
  greedy.greedy = true;
  const ContinuationEvent event(tiny_events()[1].pattern, greedy);
  const Question question(tiny_.model(), law_, event);
  EXPECT_NE(why_not(make_method("payoff", {}), question).find("sampled"), std::string::npos);
  EXPECT_EQ(why_not(make_method("static", {}), question), "");
  const NextToken next(Target({3}, tiny_.model().head()));
  EXPECT_NE(why_not(make_method("payoff", {}), {tiny_.model(), law_, next}).find("pattern"),
            std::string::npos);
}

TEST_F(PayoffTest, TellsTextsAndTheirMatches) {
  const ContinuationEvent event(tiny_events()[1].pattern, tiny_sampling(kSteps));
  const Estimate e =
      run_method(make_method("payoff", {{"budget", "500", ""}}), {tiny_.model(), law_, event}, 1, pool_);
  ASSERT_FALSE(e.triggers.empty());
  for (const Trigger& t : e.triggers) {
    EXPECT_EQ(t.said.continuation.substr(t.said.match_begin, t.said.match_end - t.said.match_begin), "abca");
    EXPECT_LE(t.answer.size(), kSteps);
  }
  EXPECT_GT(e.cost.tokens, 0.0);
  const std::string json = to_json(e);
  for (const char* part : {"\"continuation\":", "\"law\":{", "\"within\":4", "\"match\":["})
    EXPECT_NE(json.find(part), std::string::npos) << part;
}

}  // namespace
}  // namespace deeptail
