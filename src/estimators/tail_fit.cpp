// Extreme-value forecasts: a Gumbel tail of psi = -log(-log p), which is a straight line in log survival.
#include <algorithm>
#include <cmath>
#include <limits>

#include "core/random.h"
#include "deeptail/forecast.h"

namespace deeptail {

namespace {

constexpr double kLowest = -std::numeric_limits<double>::infinity();

// The largest first.
std::vector<double> sorted_psi(std::span<const double> log_p) {
  std::vector<double> psi;
  // p = 1 would be infinitely large: just below it instead.
  for (const double value : log_p)
    if (value > kLowest) psi.push_back(-std::log(std::max(-value, 1e-15)));
  std::sort(psi.begin(), psi.end(), std::greater<>());
  return psi;
}

// psi: descending, of n prompts, those of 0 left out. Nothing to fit: slope 0.
TailFit fit_sorted(std::span<const double> psi, std::size_t n, std::size_t top) {
  const std::size_t k = std::min(top, psi.size());
  double mean_x = 0.0, mean_y = 0.0, xx = 0.0, xy = 0.0;
  const auto share = [&](std::size_t j) {
    return std::log(static_cast<double>(j + 1) / static_cast<double>(n));
  };
  for (std::size_t j = 0; j < k; ++j) {
    mean_x += psi[j] / static_cast<double>(k);
    mean_y += share(j) / static_cast<double>(k);
  }
  for (std::size_t j = 0; j < k; ++j) {
    xx += (psi[j] - mean_x) * (psi[j] - mean_x);
    xy += (psi[j] - mean_x) * (share(j) - mean_y);
  }
  if (k < 3 || !(xx > 1e-18)) return {.top = k};
  const double slope = xy / xx;
  return {.slope = slope, .offset = mean_y - slope * mean_x, .top = k};
}

double quantile(std::vector<double>& values, double q) {
  std::sort(values.begin(), values.end());
  const double at = q * static_cast<double>(values.size() - 1);
  const auto low = static_cast<std::size_t>(at);
  const double part = at - static_cast<double>(low);
  return low + 1 < values.size() ? values[low] * (1.0 - part) + values[low + 1] * part : values[low];
}

void check_queries(std::span<const double> queries) {
  for (const double n : queries)
    if (!(n >= 1.0) || !(n <= 1e300)) throw InputError("{:g} queries: expected at least 1", n);
}

}  // namespace

double TailFit::log_p(double queries) const { return -std::exp(-(-std::log(queries) - offset) / slope); }

TailFit fit_tail(std::span<const double> log_p, std::size_t top) {
  const std::vector<double> psi = sorted_psi(log_p);
  const TailFit fit = fit_sorted(psi, log_p.size(), top);
  if (!(fit.slope < 0.0))
    throw InputError(
        "a forecast needs at least 3 prompts whose chances are above 0 and differ: of {} prompts, {} are "
        "above 0",
        log_p.size(), psi.size());
  return fit;
}

void ForecastConfig::validate() const {
  if (top > 0 && top < 3) throw InputError("top {}: expected at least 3 prompts", top);
  if (resamples < 20 || resamples > 1000000)
    throw InputError("resamples {}: expected 20 to 1000000", resamples);
  if (!(confidence > 0.0 && confidence < 1.0))
    throw InputError("confidence {}: expected a number between 0 and 1", confidence);
}

std::size_t ForecastConfig::top_of(std::size_t prompts) const {
  return top > 0 ? std::min(top, prompts) : std::min(prompts, std::clamp<std::size_t>(prompts / 10, 10, 100));
}

std::vector<WorstOf> forecast_worst(std::span<const double> log_p, std::span<const double> queries,
                                    const ForecastConfig& config) {
  config.validate();
  check_queries(queries);
  const std::size_t m = log_p.size(), top = config.top_of(m);
  const TailFit fit = fit_tail(log_p, top);
  std::vector<WorstOf> out;
  for (const double n : queries) out.push_back({.queries = n, .log_p = fit.log_p(n)});
  std::vector<std::vector<double>> again(queries.size()), largest(queries.size());
  std::vector<double> drawn(m);
  for (std::size_t b = 0; b < config.resamples; ++b) {
    for (std::size_t i = 0; i < m; ++i) {
      const double u =
          unit_double(uniform64({config.seed, Stream::kResample}, b, static_cast<std::uint32_t>(i)));
      drawn[i] = log_p[std::min(m - 1, static_cast<std::size_t>(u * static_cast<double>(m)))];
    }
    const TailFit other = fit_sorted(sorted_psi(drawn), m, top);
    const double u =
        unit_double(uniform64({config.seed, Stream::kResample}, b, static_cast<std::uint32_t>(m)));
    for (std::size_t q = 0; q < queries.size() && other.slope < 0.0; ++q) {
      again[q].push_back(other.log_p(queries[q]));
      largest[q].push_back(other.log_p(queries[q] / -std::log1p(-u)));  // a share E / n is beyond it
    }
  }
  for (std::size_t q = 0; q < queries.size(); ++q) {
    if (again[q].empty()) {
      again[q].push_back(out[q].log_p);
      largest[q].push_back(out[q].log_p);
    }
    const double tail = 0.5 - 0.5 * config.confidence;
    out[q].log_low = quantile(again[q], tail);
    out[q].log_high = quantile(again[q], 1.0 - tail);
    out[q].log_worst_low = quantile(largest[q], tail);
    out[q].log_worst_high = quantile(largest[q], 1.0 - tail);
  }
  return out;
}

std::vector<WorstOf> worst_of_pool(std::span<const double> log_p, std::span<const double> queries) {
  check_queries(queries);
  if (log_p.empty()) throw InputError("no prompts: expected at least one");
  std::vector<double> sorted(log_p.begin(), log_p.end());
  std::sort(sorted.begin(), sorted.end(), std::greater<>());
  std::vector<WorstOf> out;
  for (const double n : queries) {
    // The largest p that at least one in n prompts reaches.
    const double rank = std::ceil(static_cast<double>(sorted.size()) / n - 1e-9);
    const double value = sorted[std::min(sorted.size(), static_cast<std::size_t>(std::max(1.0, rank))) - 1];
    out.push_back({.queries = n, .log_p = value, .log_low = value, .log_high = value});
  }
  return out;
}

}  // namespace deeptail
