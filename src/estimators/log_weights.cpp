#include "estimators/log_weights.h"

#include <algorithm>
#include <cmath>

#include "core/statistics.h"

namespace deeptail {

void WeightSums::add(double log_weight) {
  ++count;
  positive += log_weight > kLogZero;
  log_sum = log_add(log_sum, log_weight);
  log_sum_squares = log_add(log_sum_squares, 2.0 * log_weight);
  log_largest = std::max(log_largest, log_weight);
}

void WeightSums::add(const WeightSums& other) {
  count += other.count;
  positive += other.positive;
  log_sum = log_add(log_sum, other.log_sum);
  log_sum_squares = log_add(log_sum_squares, other.log_sum_squares);
  log_largest = std::max(log_largest, other.log_largest);
}

double WeightSums::effective() const { return count == 0 ? 0.0 : std::exp(2.0 * log_sum - log_sum_squares); }
double WeightSums::largest_share() const { return count == 0 ? 0.0 : std::exp(log_largest - log_sum); }

BatchSpread spread_of(std::span<const BatchSum> batches) {
  double log_hits = kLogZero, log_all = kLogZero;
  for (const BatchSum& b : batches) {
    log_hits = log_add(log_hits, b.log_hits);
    log_all = log_add(log_all, b.log_all);
  }
  const auto n = static_cast<double>(batches.size());
  if (log_hits == kLogZero) return {};
  if (batches.size() == 1) return {1.0, 1.0};  // it says nothing of its own spread
  double residuals = 0.0, hits_squared = 0.0, all_squared = 0.0;
  for (const BatchSum& b : batches) {
    const double hits = std::exp(b.log_hits - log_hits), all = std::exp(b.log_all - log_all);
    residuals += (hits - all) * (hits - all);
    hits_squared += hits * hits;
    all_squared += all * all;
  }
  return {std::sqrt(n / (n - 1.0) * residuals), 1.0 / std::max(hits_squared, all_squared)};
}

double log_half_width(double relative_sd, double effective_batches, double confidence) {
  return relative_sd * student_t_quantile(0.5 + 0.5 * confidence, std::max(1.0, effective_batches - 1.0));
}

double log_upper_bound(std::span<const TiltedBatch> batches, double confidence) {
  const double needed = -std::log(0.5 * (1.0 - confidence));  // L
  double r = 1.0;
  for (int round = 0; round < 30; ++round) {
    double above = needed, below = 0.0;
    for (const TiltedBatch& b : batches) {
      if (!b.tilted) {
        below += static_cast<double>(b.n);
        continue;
      }
      double best = 0.0, best_tail = 0.0;  // n / c and the tail beyond c
      for (std::size_t i = 0; i < kMomentPowers.size(); ++i) {
        const double k = kMomentPowers[i];
        const double log_c = (std::log(k + 1.0) + b.log_moments[i] - std::log(r)) / k;
        const double share = static_cast<double>(b.n) * std::exp(-log_c), tail = r / (k + 1.0);
        if (share * (r - tail) > best * (r - best_tail)) best = share, best_tail = tail;
      }
      above += best * best_tail;
      below += best;
    }
    r = std::min(r, above / below);
  }
  return std::log(r);
}

}  // namespace deeptail
