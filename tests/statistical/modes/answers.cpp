#include "answers.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "constructed_model.h"
#include "stub_model.h"

namespace deeptail::modes {

namespace {

double diagnostic(const Estimate& e, std::string_view name) {
  for (const auto& [key, value] : e.diagnostics)
    if (key == name) return value;
  return 0.0;
}

// What tokensplit is asked about a problem.
struct Asked {
  const Problem& problem;
  Transformer model;
  std::optional<NextToken> next_token;  // else the problem's own event
  double evaluation;                    // in forward-pass equivalents
};

Asked asked_of(const Problem& problem, bool weights) {
  constexpr double kDefaultEvaluations = 1.9e6;
  if (!weights) return {problem, stub_model(), {}, 1.0};
  Transformer model = constructed_model(problem);
  const double budget = tokensplit_budget(model.config(), problem.law());
  NextToken event(Target({kTarget}, model.head()));
  return {problem, std::move(model), std::move(event), budget / kDefaultEvaluations};
}

Answer answer_of(const Asked& asked, TokensplitConfig config) {
  ThreadPool one(1);
  const Problem& problem = asked.problem;
  config.max_triggers = std::numeric_limits<std::size_t>::max();  // all that was seen, for the recall
  config.budget *= asked.evaluation;
  const Event& event = asked.next_token ? static_cast<const Event&>(*asked.next_token) : problem.event();
  const Estimate e = tokensplit(asked.model, problem.law(), event, config, one);
  std::vector<std::vector<TokenId>> seen;
  for (const Trigger& trigger : e.triggers) seen.push_back(trigger.tokens);
  return {.seed = config.seed,
          .ratio = std::exp(e.log_p) / problem.truth(),
          .low = std::exp(e.log_low) / problem.truth(),
          .high = std::exp(e.log_high) / problem.truth(),
          .evaluations = static_cast<double>(e.cost.forward + e.cost.score_evals),
          .seconds = e.cost.seconds,
          .recall = problem.recall(seen),
          .unseen = diagnostic(e, "unseen_share"),
          .warned = !e.warnings.empty()};
}

}  // namespace

std::vector<Answer> run_problems(const Problems& problems, const Plan& plan) {
  std::vector<Asked> asked;
  for (const auto& problem : problems) asked.push_back(asked_of(*problem, plan.weights));
  std::vector<Answer> answers(problems.size() * plan.n_seeds);
  ThreadPool pool(plan.threads);
  pool.for_each_block(answers.size(), [&](std::size_t i, std::size_t) {
    TokensplitConfig config = plan.config;
    config.seed = plan.first_seed + i % plan.n_seeds;
    answers[i] = answer_of(asked[i / plan.n_seeds], config);
    answers[i].problem = i / plan.n_seeds;
  });
  return answers;
}

Figures figures_of(std::span<const Answer> answers) {
  Figures f;
  f.n = static_cast<double>(answers.size());
  double squares = 0.0;
  for (const Answer& a : answers) {
    f.within_two += a.within_two() / f.n;
    f.below_half += (a.ratio < 0.5) / f.n;
    f.covered += a.covered() / f.n;
    f.mean_ratio += a.ratio / f.n;
    squares += a.ratio * a.ratio / f.n;
    f.rms_log10 += std::pow(std::log10(std::max(a.ratio, 1e-3)), 2.0) / f.n;
    f.recall += a.recall / f.n;
    f.evaluations += a.evaluations / f.n;
    f.seconds += a.seconds / f.n;
    f.warned += a.warned / f.n;
    f.silent += !a.warned && !a.within_two();
  }
  f.error = std::sqrt(std::max(0.0, squares - f.mean_ratio * f.mean_ratio) / std::max(1.0, f.n - 1.0));
  f.rms_log10 = std::sqrt(f.rms_log10);
  return f;
}

std::vector<std::string> shortfalls(const Figures& f, const Bars& bars) {
  std::vector<std::string> out;
  const auto need = [&](bool met, std::string text) {
    if (!met) out.push_back(std::move(text));
  };
  need(f.within_two >= bars.within_two,
       fmt::format("within a factor of two: {:.4f}, wanted {}", f.within_two, bars.within_two));
  need(f.below_half <= bars.below_half,
       fmt::format("below half: {:.4f}, wanted at most {}", f.below_half, bars.below_half));
  need(f.covered >= bars.least_covered && f.covered <= bars.most_covered,
       fmt::format("covered: {:.4f}, wanted {} to {}", f.covered, bars.least_covered, bars.most_covered));
  need(std::abs(f.mean_ratio - 1.0) <= bars.errors * f.error,
       fmt::format("mean of p / truth: {:.4f} +- {:.4f}, wanted 1 within {} errors", f.mean_ratio, f.error,
                   bars.errors));
  need(f.recall >= bars.recall, fmt::format("mode recall: {:.4f}, wanted {}", f.recall, bars.recall));
  need(f.evaluations <= bars.evaluations,
       fmt::format("evaluations: {:.3g}, wanted at most {:.3g}", f.evaluations, bars.evaluations));
  need(static_cast<double>(f.silent) <= bars.silent * f.n,
       fmt::format("off by more than a factor of two without a warning: {} of {}, wanted at most {} of all",
                   f.silent, f.n, bars.silent));
  return out;
}

}  // namespace deeptail::modes
