// Independent replicas taken together: mean, interval, agreement.
#include <algorithm>

#include "core/statistics.h"
#include "deeptail/splitting.h"

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

// Sample variance of log p (no run extinct) or of p / mean.
double spread(std::span<const SplittingRun> runs, double log_p, bool of_logs) {
  double mean = 0.0, squares = 0.0;
  const auto n = static_cast<double>(runs.size());
  const auto value = [&](const SplittingRun& run) {
    return of_logs ? run.log_p : std::exp(run.log_p - log_p);
  };
  for (const auto& run : runs) mean += value(run) / n;
  for (const auto& run : runs) squares += (value(run) - mean) * (value(run) - mean);
  return squares / (n - 1);
}

// Half-width of the interval of log p. With s2 the variance of log p over lognormal replicas, log of their
// mean has variance s2 / R + s2^2 / (2 (R - 1)) (Cox's method); t instead of the normal for the estimated s2.
double half_width(std::span<const SplittingRun> runs, double variance, bool of_logs, double confidence) {
  const auto r = static_cast<double>(runs.size());
  if (runs.size() == 1) {
    const double z = normal_quantile(0.5 + confidence / 2);
    return z * std::sqrt(std::log1p(variance));
  }
  const double t = student_t_quantile(0.5 + confidence / 2, r - 1);
  return t * std::sqrt(variance / r + (of_logs ? variance * variance / (2 * (r - 1)) : 0.0));
}

// Particles of the first draws, if none of the runs went further.
std::size_t only_drawn(std::span<const SplittingRun> runs) {
  std::size_t n = 0;
  for (const auto& run : runs) {
    if (run.levels.size() != 1 || run.end == SplittingEnd::kStopped) return 0;
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

// An upper bound when no replica reached the event: the best that any of them allows, or what plain sampling
// does.
double log_upper(std::span<const SplittingRun> runs) {
  if (const std::size_t n = only_drawn(runs); n > 0) return log_upper_after_none(n);
  double upper = -kInfinity;
  for (const auto& run : runs) upper = std::max(upper, run.log_upper);
  return upper;
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
  out.log_certain_low = out.log_p + std::log((1 - confidence) * share);
  if (std::isinf(out.log_p)) {
    out.log_low = -kInfinity;
    out.log_high = log_upper(runs);
    return out;
  }
  const bool of_logs = out.extinct == 0;
  double variance = own;
  if (runs.size() > 1) {
    variance = spread(runs, out.log_p, of_logs);
    const double limit = chi_squared_upper_quantile(kFalseAlarm, r - 1) / (r - 1);
    out.disagree = variance > limit * (of_logs ? std::log1p(own) : own);
  }
  out.relative_sd = std::sqrt(variance / r);
  const double half = half_width(runs, variance, of_logs, confidence);
  out.log_low = std::max(out.log_p - half, out.log_p + std::log((1 - confidence) / 2 * share));
  out.log_high = std::min(out.log_p + half, 0.0);
  if (const std::size_t n = only_drawn(runs); n > 0) fill_from_draws(runs, n, out);
  return out;
}

}  // namespace deeptail
