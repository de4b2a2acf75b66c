// Every event and estimator on sampled texts against all texts of tiny models: 2000 seeds, means within three standard errors,
// coverage of the 95 % intervals. Chances that are nonsense leave all means as they are.
#include <gtest/gtest.h>

#include "deeptail/payoff.h"
#include "unit/tiny_texts.h"

namespace deeptail {
namespace {

constexpr std::size_t kSteps = 6, kSeeds = 2000;

using Ask = std::function<Estimate(const ContinuationEvent&, std::uint64_t seed)>;

class Questions : public ::testing::TestWithParam<bool> {
 protected:
  void check(const std::string& name, const Ask& ask, std::size_t seeds, bool coverage) {
    auto events = tiny_events();
    events.push_back(tiny_regex_event());
    events.push_back(tiny_end_event());
    for (const TinyEvent& e : events) {
      const double p = truth_(e);
      const ContinuationEvent event(e.pattern, tiny_sampling(kSteps));
      double sum = 0.0, squares = 0.0;
      std::size_t covered = 0;
      for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
        const Estimate found = ask(event, seed);
        const double ratio = std::exp(found.log_p) / p;
        sum += ratio;
        squares += ratio * ratio;
        covered += std::exp(found.log_low) <= p && p <= std::exp(found.log_high);
      }
      const auto n = static_cast<double>(seeds);
      const double mean = sum / n, error = std::sqrt((squares / n - mean * mean) / n);
      const double share = static_cast<double>(covered) / n;
      fmt::print("{:12} {:18} p {:9.3e}  mean/p {:.4f} +- {:.4f}  covered {:.3f}\n", name, e.name, p, mean, error, share);
      EXPECT_NEAR(mean, 1.0, 3.0 * error + 1e-9) << name << ", " << e.name;
      if (coverage) EXPECT_GE(share, 0.93) << name << ", " << e.name;
    }
  }

  TinyModel tiny_{GetParam(), 5};
  TinyPrompts law_;
  ThreadPool pool_{2};
  TinyTruth truth_{tiny_.model(), tiny_sampling(kSteps)};
};
INSTANTIATE_TEST_SUITE_P(Forms, Questions, ::testing::Values(false, true));

TEST_P(Questions, Payoff) {
  check("payoff", [&](const ContinuationEvent& event, std::uint64_t seed) {
    return payoff(tiny_.model(), law_, event, {.budget = 500, .levels = PayoffLevels::kNone, .seed = seed}, pool_);
  }, kSeeds, true);
}

TEST_P(Questions, PayoffWithLevels) {
  check("levels", [&](const ContinuationEvent& event, std::uint64_t seed) {
    return payoff(tiny_.model(), law_, event, {.budget = 1000, .levels = PayoffLevels::kAlways, .seed = seed}, pool_);
  }, kSeeds / 4, false);
}

TEST_P(Questions, Static) {
  check("static", [&](const ContinuationEvent& event, std::uint64_t seed) {
    return static_split(tiny_.model(), law_, event, {.budget = 8000, .seed = seed}, pool_);
  }, kSeeds / 4, false);
}

TEST_P(Questions, Nonsense) {
  check("nonsense", [&](const ContinuationEvent& event, std::uint64_t seed) {
    std::vector<double> chances;
    for (std::size_t s = 0; s < event.chances().size(); ++s)
      chances.push_back(0.003 + 0.11 * static_cast<double>((7 * s + 3) % 9));
    const ContinuationPayoff paying(event.with_chances(chances), 2);
    const auto scorer = paying.scorer(tiny_.model(), law_, {}, pool_);
    const std::size_t n = 200;
    const Inputs inputs = sample_inputs(law_, seed, 0, n, pool_);
    const auto numbers = sample_numbers(paying, law_, seed, 0, n);
    std::vector<double> scores(n);
    scorer->scores({inputs.batch(), numbers}, scores);
    Estimate e;
    e.log_p = log_mean_payoff(scorer->log_payoffs(), n);
    return e;
  }, kSeeds, false);
}

}  // namespace
}  // namespace deeptail
