// Constructed models say kTarget exactly where the problem's event happens.
#include "constructed_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "answers.h"
#include "constructed.h"
#include "sizes.h"

namespace deeptail::modes {
namespace {

using Tokens = std::vector<TokenId>;

class Inputs {
 public:
  Inputs(const Problem& problem, std::uint64_t seed) : problem_(problem), seed_(seed), random_(seed) {}

  Tokens drawn() {
    Tokens tokens(dist().length());
    sample_range(dist(), seed_, n_drawn_++, pool_, tokens);
    return tokens;
  }
  // n tokens of a mode, at places of the lock; the others are drawn.
  Tokens with_mode(std::size_t m, std::size_t n) {
    const Lock& lock = problem_.lock();
    Tokens tokens = drawn();
    std::vector<std::size_t> places(lock.positions.size());
    for (std::size_t i = 0; i < places.size(); ++i) places[i] = i;
    std::ranges::shuffle(places, random_);
    for (std::size_t i = 0; i < n; ++i) tokens[lock.positions[places[i]]] = lock.modes[m][places[i]];
    return tokens;
  }
  // Other tokens outside the lock, so that the units are exactly these: one position's best token after the other.
  bool reach(Tokens& tokens, std::int64_t units) {
    const auto& effects = problem_.context().effects();
    std::int64_t off = problem_.context().units(tokens) - units;
    for (int step = 0; off != 0 && step < 2000; ++step) {
      const ContextSum::Effects& e = effects[random_() % effects.size()];
      TokenId& token = tokens[e.position];
      const std::int64_t others = off - e.of[static_cast<std::size_t>(token)];
      const Tokens& ids = dist().table(e.position).ids();
      token = ids[random_() % ids.size()];
      for (std::size_t i = 0; step % 30 < 29 && i < ids.size(); ++i)
        if (std::abs(others + e.of[static_cast<std::size_t>(ids[i])]) <
            std::abs(others + e.of[static_cast<std::size_t>(token)]))
          token = ids[i];
      off = others + e.of[static_cast<std::size_t>(token)];
    }
    return off == 0;
  }
  // The lock as it is, at its row's threshold and one unit below.
  void at_threshold(Tokens tokens, std::vector<Tokens>& out) {
    const Row& row = problem_.lock().rows[problem_.lock().row_of(tokens)];
    if (problem_.context().tail(row.threshold) == 0.0) return;  // no sum is as large
    for (const std::int64_t below : {0, 1}) {
      EXPECT_TRUE(reach(tokens, row.threshold - below)) << problem_.name() << " " << row.threshold;
      out.push_back(tokens);
    }
  }

 private:
  const Distribution& dist() const { return *problem_.law().tables(); }

  const Problem& problem_;
  std::uint64_t seed_, n_drawn_ = 0;
  std::mt19937_64 random_;
  ThreadPool pool_{1};
};

std::vector<Tokens> inputs_of(const Problem& problem, std::size_t n) {
  Inputs inputs(problem, 5);
  std::vector<Tokens> out;
  for (std::size_t i = 0; i < n; ++i) {
    out.push_back(inputs.drawn());
    inputs.at_threshold(inputs.drawn(), out);
  }
  const Lock& lock = problem.lock();
  const std::size_t each = std::max<std::size_t>(1, n / lock.rows.size());
  for (std::size_t m = 0; m < lock.modes.size(); ++m)
    for (std::size_t agree = 1; agree <= lock.positions.size(); ++agree)
      for (std::size_t i = 0; i < each; ++i) {
        out.push_back(inputs.with_mode(m, agree));
        inputs.at_threshold(out.back(), out);
      }
  return out;
}

std::vector<Margin> margins_of(const Transformer& model, const std::vector<Tokens>& inputs) {
  const std::size_t n = inputs.size(), d = model.config().d_model;
  Tokens tokens;
  for (const Tokens& input : inputs) tokens.insert(tokens.end(), input.begin(), input.end());
  AlignedVector<float> resid(n * d);
  std::vector<Margin> out(n);
  ThreadPool pool(2);
  final_residuals(model, {tokens, inputs[0].size()}, pool, {resid.data(), d});
  margins(model.head(), Target({kTarget}, model.head()), n, {resid.data(), d}, pool, out);
  return out;
}

TEST(ConstructedModels, SayTheTargetWhereTheEventHappens) {
  std::size_t n = 0, hits = 0;
  for (const auto& problem : constructed_problems()) {
    const std::vector<Tokens> inputs = inputs_of(*problem, sized(60, 2));
    const std::vector<Margin> margins = margins_of(constructed_model(*problem), inputs);
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const Row& row = problem->lock().rows[problem->lock().row_of(inputs[i])];
      const double score = problem->score(inputs[i]), half = 0.5 * row.slope / kUnitsPerSd;
      ASSERT_EQ(margins[i].event(), score >= 0.0)
          << problem->name() << " " << score << " " << margins[i].value;
      // So levels are those of the score, nearly.
      EXPECT_NEAR(margins[i].value, score + half, 0.02 * std::abs(score + half) + 0.1 * half)
          << problem->name();
      hits += score >= 0.0;
    }
    n += inputs.size();
  }
  EXPECT_GT(n, sized(4000u, 200u));
  EXPECT_GT(hits, n / 10);
}

TEST(ConstructedModels, AnswersDoNotDependOnThreads) {
  Problems problems = constructed_problems();
  std::erase_if(problems, [](const auto& problem) { return problem->family() != "third"; });
  Plan plan{.config = {.budget = 6000}, .n_seeds = 1, .threads = 1, .weights = true};
  const std::vector<Answer> one = run_problems(problems, plan);
  plan.threads = 2;
  const std::vector<Answer> two = run_problems(problems, plan);
  ASSERT_EQ(one.size(), 2u);
  for (std::size_t i = 0; i < one.size(); ++i) {
    EXPECT_GT(one[i].evaluations, 500.0);
    EXPECT_EQ(one[i].ratio, two[i].ratio);
    EXPECT_EQ(one[i].recall, two[i].recall);
  }
}

}  // namespace
}  // namespace deeptail::modes
