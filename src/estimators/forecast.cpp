// Chances of prompts, a forecast from them, and what is exact or found by splitting beside it.
#include <algorithm>
#include <cmath>
#include <limits>

#include "core/stopwatch.h"
#include "deeptail/forecast.h"
#include "deeptail/splitting.h"
#include "inputs/prompt_pool.h"

namespace deeptail {

namespace {

constexpr std::size_t kPromptsInBatch = 2048;

// All prompts of a pool, as they are.
Inputs prompts_of(const PromptPool& pool) {
  Inputs out;
  std::size_t longest = 1;
  for (const auto& prompt : pool.prompts()) longest = std::max(longest, prompt.size());
  out.resize(pool.prompts().size(), longest);
  for (std::size_t i = 0; i < out.size(); ++i) {
    const std::vector<TokenId>& prompt = pool.prompts()[i];
    std::copy(prompt.begin(), prompt.end(), out.row(i).begin());
    out.lengths[i] = static_cast<std::uint32_t>(prompt.size());
  }
  return out;
}

void check_equally_likely(const PromptPool& pool) {
  for (std::size_t i = 1; i < pool.choice().size(); ++i)
    if (std::abs(pool.choice().probability(i) / pool.choice().probability(0) - 1.0) > 1e-9)
      throw InputError("{}: prompts with weights: a forecast takes all of them as equally likely",
                       pool.facts().name);
}

// Of the prompts, or of `n` samples of the law where there are none.
std::vector<double> chances_of(Elicitation& asked, const InputLaw& law, const Inputs* prompts,
                               std::uint64_t n, std::uint64_t seed, ThreadPool& pool, const Watch& watch) {
  std::vector<double> out;
  for (std::uint64_t first = 0; first < n; first += kPromptsInBatch) {
    const auto some = static_cast<std::size_t>(std::min<std::uint64_t>(kPromptsInBatch, n - first));
    Inputs batch;
    if (prompts == nullptr) {
      batch = sample_inputs(law, seed, first, some, pool);
    } else {
      const auto at = prompts->tokens.begin() + static_cast<std::ptrdiff_t>(first * prompts->max_length);
      batch.max_length = prompts->max_length;
      batch.tokens.assign(at, at + static_cast<std::ptrdiff_t>(some * prompts->max_length));
      batch.lengths.assign(prompts->lengths.begin() + static_cast<std::ptrdiff_t>(first),
                           prompts->lengths.begin() + static_cast<std::ptrdiff_t>(first + some));
    }
    out.resize(out.size() + some);
    asked.log_chances(batch, std::span(out).last(some));
    if (!goes_on(watch, progress_of(out.size(), n))) break;
  }
  return out;
}

void summarise(std::vector<double> log_p, WorstForecast& out) {
  std::sort(log_p.begin(), log_p.end());
  out.prompts = log_p.size();
  out.log_median = log_p[log_p.size() / 2];
  out.log_largest = log_p.back();
  out.log_mean = -std::numeric_limits<double>::infinity();
  for (const double value : log_p) out.log_mean = log_add(out.log_mean, value);
  out.log_mean -= std::log(static_cast<double>(log_p.size()));
}

}  // namespace

void ForecastRequest::validate() const {
  fit.validate();
  splitting.validate();
  if (queries.empty()) throw InputError("no numbers of queries: expected at least one");
  for (const double n : queries)
    if (!(n >= 1.0 && n <= 1e300)) throw InputError("{:g} queries: expected 1 to 1e300", n);
  if (prompts < 1 || prompts > std::uint64_t{1} << 40)
    throw InputError("{} prompts: expected 1 to 2^40", prompts);
}

WorstForecast forecast_prompts(const LoadedModel& model, const InputLaw& law, const ForecastRequest& request,
                               ThreadPool& pool, const Watch& watch) {
  request.validate();
  const Stopwatch stopwatch;
  const auto* finite = dynamic_cast<const PromptPool*>(&law);
  if (finite != nullptr) check_equally_likely(*finite);
  const Inputs all = finite != nullptr ? prompts_of(*finite) : Inputs();
  Elicitation asked(model, request.text, request.sampling, law.facts().max_length, pool);
  WorstForecast out;
  const std::vector<double> log_p =
      chances_of(asked, law, finite != nullptr ? &all : nullptr,
                 finite != nullptr ? all.size() : request.prompts, request.seed, pool, watch);
  summarise(log_p, out);
  out.top = request.fit.top_of(log_p.size());
  try {
    out.forecast = forecast_worst(log_p, request.queries, request.fit);
  } catch (const InputError& e) {
    out.no_forecast = e.what();
  }
  out.chances = log_p.size();
  if (finite != nullptr) {
    out.pool = worst_of_pool(log_p, request.queries);
  } else {
    const double most = *std::max_element(request.queries.begin(), request.queries.end());
    const ChanceCurve curve = chance_curve(
        law, [&](const Inputs& inputs, std::span<double> found) { asked.log_chances(inputs, found); }, most,
        request.splitting, pool, watch);
    out.splitting = worst_by_curve(curve, request.queries);
    out.splitting_ended = curve.ended;
    out.chances += curve.chances;
  }
  out.left_out = asked.left_out();
  out.seconds = stopwatch.seconds();
  return out;
}

}  // namespace deeptail
