// Independent replicas taken together: mean, interval, agreement.
#include <algorithm>

#include "core/statistics.h"
#include "deeptail/splitting.h"
#include "splitting/lognormal_mean.h"

namespace deeptail {

namespace {

constexpr double kFalseAlarm = 1e-3;  // of "the replicas disagree"
const double kInfinity = std::numeric_limits<double>::infinity();

double log_mean(std::span<const SplittingRun> runs) {
  double top = -kInfinity, sum = 0.0;
  for (const auto& run : runs) top = std::max(top, run.log_p);
  if (std::isinf(top)) return top;
  for (const auto& run : runs) sum += std::exp(run.log_p - top);
  return top + std::log(sum / static_cast<double>(runs.size()));
}

struct LogInterval {
  double low, high;
};

struct Moments {
  double mean, variance;
};
Moments moments_of(const std::vector<double>& values) {
  const auto n = static_cast<double>(values.size());
  double mean = 0.0, squares = 0.0;
  for (const double v : values) mean += v / n;
  for (const double v : values) squares += (v - mean) * (v - mean);
  return {mean, squares / (n - 1)};
}

// log p of those that reached the event.
std::vector<double> logs_of(std::span<const SplittingRun> runs) {
  std::vector<double> logs;
  for (const auto& run : runs)
    if (!std::isinf(run.log_p)) logs.push_back(run.log_p);
  return logs;
}

// Relative variance of one replica, extinct ones among them.
double relative_variance(std::span<const SplittingRun> runs, double log_p) {
  std::vector<double> ratios;
  for (const auto& run : runs) ratios.push_back(std::exp(run.log_p - log_p));
  return moments_of(ratios).variance;
}

// The interval of log p from the spread of several replicas; fills the spread, too. own: what they say of
// their own relative variance.
//
// Lower end: with s2 the variance of log p over lognormal replicas, log of their mean has variance
// s2 / R + s2^2 / (2 (R - 1)) (Cox's method); t instead of the normal for the estimated s2. Around the mean
// that errs to the safe side below and misses above: so the upper end is at least that of
// lognormal_mean_upper.
//
// Where some died out, the variance is that of p itself, and those that did not die bound p from above: their
// own mean is p over the chance to reach the event, which is at least p.
LogInterval interval_of(std::span<const SplittingRun> runs, double own, double confidence,
                        ReplicaSummary& out) {
  const auto r = static_cast<double>(runs.size());
  const std::vector<double> logs = logs_of(runs);
  const bool of_logs = logs.size() == runs.size();
  const double variance = of_logs ? moments_of(logs).variance : relative_variance(runs, out.log_p);
  const double limit = chi_squared_upper_quantile(kFalseAlarm, r - 1) / (r - 1);
  out.disagree = variance > limit * (of_logs ? std::log1p(own) : own);
  out.relative_sd = std::sqrt(variance / r);

  const double t = student_t_quantile(0.5 + confidence / 2, r - 1);
  const double half = t * std::sqrt(variance / r + (of_logs ? variance * variance / (2 * (r - 1)) : 0.0));
  LogInterval interval{out.log_p - half, out.log_p + half};
  if (logs.size() < 2) return interval;
  const Moments m = moments_of(logs);
  const double upper = lognormal_mean_upper(m.mean, m.variance, logs.size(), 0.5 + confidence / 2);
  interval.high = std::max(interval.high, upper);
  return interval;
}

// Particles of the first draws, if none of the runs went further.
std::size_t only_drawn(std::span<const SplittingRun> runs) {
  std::size_t n = 0;
  for (const auto& run : runs) {
    if (run.levels.size() != 1 || run.weighted || run.end == SplittingEnd::kStopped) return 0;
    n += run.levels.front().particles;
  }
  return n;
}

// The interval of plain sampling, all draws together (Clopper and Pearson).
void fill_from_draws(std::span<const SplittingRun> runs, std::size_t n, ReplicaSummary& out) {
  std::size_t hits = 0;
  for (const auto& run : runs) hits += run.end == SplittingEnd::kReached ? run.levels.front().survivors : 0;
  const auto h = static_cast<double>(hits), misses = static_cast<double>(n - hits);
  const double tail = (1 - out.confidence) / 2;
  out.log_low = std::log(beta_quantile(h, misses + 1, tail));
  out.log_high = hits == n ? 0.0 : std::log(beta_upper_quantile(h + 1, misses, tail));
}

}  // namespace

ReplicaSummary combine_replicas(std::span<const SplittingRun> runs, double confidence, double share) {
  ReplicaSummary out{.log_p = log_mean(runs), .confidence = confidence};
  const auto r = static_cast<double>(runs.size());
  double own = 0.0;  // mean of what the runs say of their own relative variance
  for (const auto& run : runs) {
    out.extinct += run.end != SplittingEnd::kReached;
    own += std::max(run.genealogy_variance, run.level_variance) / r;
  }
  out.genealogy_relative_sd = std::sqrt(own / r);
  out.log_certain_low = out.log_p + std::log((1 - confidence) * share);  // log 0: no bound
  if (std::isinf(out.log_p)) {
    FirstDraw first;
    for (const auto& run : runs) first += run.first;
    out.log_low = -kInfinity;
    out.log_high = first.log_upper(confidence);
    return out;
  }
  LogInterval interval{};
  if (runs.size() > 1) {
    interval = interval_of(runs, own, confidence, out);
  } else {
    out.relative_sd = std::sqrt(own);
    const double half = normal_quantile(0.5 + confidence / 2) * std::sqrt(std::log1p(own));
    interval = {out.log_p - half, out.log_p + half};
  }
  out.log_low = std::max(interval.low, out.log_p + std::log((1 - confidence) / 2 * share));
  out.log_high = std::min(interval.high, 0.0);
  if (const std::size_t n = only_drawn(runs); n > 0) fill_from_draws(runs, n, out);
  return out;
}

}  // namespace deeptail
