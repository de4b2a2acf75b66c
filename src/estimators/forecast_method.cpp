// forecast as a method: the mean over prompts of the chance that the answer starts with a text, where the largest chances
// are replaced by the tail that is fitted to them. What it adds is what the prompts at hand did not show.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/random.h"
#include "core/stopwatch.h"
#include "deeptail/forecast.h"
#include "deeptail/payoff.h"
#include "estimators/method_list.h"

namespace deeptail {

namespace {

constexpr std::uint64_t kForecastPart = 1 << 19;
constexpr std::size_t kForecastBranches = 8, kForecastResamples = 200, kForecastTriggers = 3;

// Of one resample, or of all prompts: the body as it is, the tail as fitted. Natural log.
double log_mean_with_tail(std::vector<double> log_p, std::size_t top) {
  const std::size_t m = log_p.size();
  std::sort(log_p.begin(), log_p.end(), std::greater<>());
  double log_sum = -std::numeric_limits<double>::infinity();
  for (std::size_t i = top; i < m; ++i) log_sum = log_add(log_sum, log_p[i]);
  const auto count = static_cast<double>(m);
  double body = log_sum - std::log(count);
  TailFit fit;
  try {
    fit = fit_tail(log_p, top);
  } catch (const InputError&) {
    for (std::size_t i = 0; i < top; ++i) log_sum = log_add(log_sum, log_p[i]);
    return log_sum - std::log(count);
  }
  // The integral over shares s = e^u of the chance that a share s reaches.
  constexpr double kStep = 0.05, kFarthest = 60.0;
  for (double u = std::log(static_cast<double>(top) / count) - 0.5 * kStep, end = u - kFarthest; u > end;
       u -= kStep)
    body = log_add(body, u + fit.log_p(std::exp(-u)) + std::log(kStep));
  return std::min(0.0, body);
}

struct PromptChances {
  std::vector<double> log_p = {};
  std::vector<Trigger> triggers = {};  // the prompts with the largest
  Work work = {};
};

PromptChances sampled_chances(const Question& q, const ContinuationPayoff& event, std::uint64_t seed,
                              double budget, ThreadPool& pool, const Watch& watch) {
  PromptChances out;
  const auto scorer = event.scorer(*q.model, *q.law, {}, pool);
  const double unit = event.score_flops(q.model->config(), *q.law);
  std::size_t n = 64;
  do {
    const std::uint64_t first = out.log_p.size();
    const Inputs inputs = sample_inputs(*q.law, seed, first, n, pool);
    const auto numbers = sample_numbers(event, *q.law, seed, first, n);
    std::vector<double> scores(n);
    out.work += scorer->scores({inputs.batch(), numbers}, scores);
    const auto paid = scorer->log_payoffs();
    for (std::size_t i = 0; i < n; ++i) {
      out.log_p.push_back(std::min(0.0, paid[i]));
      const auto prompt = inputs.sequence(i), answer = scorer->paid_answers().sequence(i);
      if (std::isinf(paid[i])) continue;
      Trigger& t = out.triggers.emplace_back();
      t.sample = first + i;
      t.tokens.assign(prompt.begin(), prompt.end());
      t.answer.assign(answer.begin(), answer.end());
      t.margin = paid[i];
    }
    std::stable_sort(out.triggers.begin(), out.triggers.end(),
                     [](const Trigger& a, const Trigger& b) { return a.margin > b.margin; });
    out.triggers.resize(std::min(out.triggers.size(), kForecastTriggers));
    const double each = out.work.flops / unit / static_cast<double>(out.log_p.size()),
                 left = (budget - out.work.flops / unit) / each;
    n = static_cast<std::size_t>(std::clamp(left, 0.0, 1024.0));
  } while (n > 0 && goes_on(watch, progress_of(static_cast<std::uint64_t>(out.work.flops / unit),
                                               static_cast<std::uint64_t>(budget))));
  return out;
}

void fill_forecast(Estimate& e, const std::vector<double>& log_p, std::uint64_t seed) {
  const std::size_t m = log_p.size(), top = ForecastConfig{}.top_of(m);
  e.log_p = log_mean_with_tail(log_p, top);
  std::vector<double> drawn(m), again;
  for (std::size_t b = 0; b < kForecastResamples; ++b) {
    for (std::size_t i = 0; i < m; ++i) {
      const double u = unit_double(uniform64({seed, Stream::kResample}, b, static_cast<std::uint32_t>(i)));
      drawn[i] = log_p[std::min(m - 1, static_cast<std::size_t>(u * static_cast<double>(m)))];
    }
    again.push_back(log_mean_with_tail(drawn, top));
  }
  std::sort(again.begin(), again.end());
  const double miss = 0.5 * (1.0 - e.confidence) * static_cast<double>(again.size());
  e.log_low = std::min(e.log_p, again[static_cast<std::size_t>(miss)]);
  e.log_high = std::max(e.log_p, again[again.size() - 1 - static_cast<std::size_t>(miss)]);
  const double seen = *std::max_element(log_p.begin(), log_p.end());
  e.diagnostics = {
      {"prompts", static_cast<double>(m)}, {"top", static_cast<double>(top)}, {"largest_log_p", seen}};
  if (std::isinf(seen)) {
    e.status = Status::kNotReachedUpperBound;
    e.log_high = std::log(clopper_pearson(0, m, e.confidence).high);
  }
}

constexpr const SettingRow* kForecastSettings[] = {&kBudget};

Estimate run_forecast(const Question& q, double budget, std::uint64_t seed, ThreadPool& pool,
                      const Watch& watch) {
  const ContinuationEvent& event = *q.event->continuation();
  if (event.pattern().kind != name_of(EventKind::kStartsWith))
    throw InputError(
        "forecast looks at the chance that an answer starts with a text, of every prompt: "
        "expected such an event");
  if (event.sampling().greedy)
    throw InputError("forecast needs a continuation that is sampled: a greedy one has no chances");
  const Stopwatch stopwatch;
  Estimate e{.method = "forecast", .guarantee = Guarantee::kModelBased, .seed = seed};
  PromptChances found = sampled_chances(q, ContinuationPayoff(event, kForecastBranches),
                                        derived_seed(seed, kForecastPart), budget, pool, watch);
  fill_forecast(e, found.log_p, seed);
  e.triggers = std::move(found.triggers);
  e.cost.forward = found.work.forwards;
  e.cost.flops = found.work.flops;
  e.cost.forward_equivalents = found.work.flops / event.score_flops(q.model->config(), *q.law);
  e.cost.seconds = stopwatch.seconds();
  return e;
}

Method make_forecast(SettingReader& s) {
  double budget = 0.0;
  s.take(kBudget, budget);
  check_text_budget(budget, "forecast");
  return pattern_method(
      budget, [budget](const Question& q, std::uint64_t seed, ThreadPool& pool, const Watch& watch) {
        return run_forecast(q, static_cast<double>(texts_of(budget, q)), seed, pool, watch);
      });
}

}  // namespace

constinit const MethodRow kForecastRow{.name = "forecast",
                                       .help = "the mean over prompts, with a fitted tail",
                                       .settings = kForecastSettings,
                                       .colour = 12,
                                       .make = make_forecast};

}  // namespace deeptail
