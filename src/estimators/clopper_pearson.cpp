#include <cmath>

#include "core/statistics.h"
#include "deeptail/estimators.h"

namespace deeptail {

// Clopper and Pearson 1934: the ends are quantiles of Beta(hits, n - hits + 1) and Beta(hits + 1, n - hits).
Interval clopper_pearson(std::uint64_t hits, std::uint64_t n, double confidence) {
  const double tail = 0.5 * (1.0 - confidence);
  const double k = static_cast<double>(hits), trials = static_cast<double>(n);
  // Without hits, and with nothing but hits, the quantile has a closed form.
  const double all_miss = -std::expm1(std::log(tail) / trials);
  if (n == 0) return {0.0, 1.0};
  if (hits == 0) return {0.0, all_miss};
  if (hits == n) return {1.0 - all_miss, 1.0};
  return {beta_quantile(k, trials - k + 1.0, tail), beta_upper_quantile(k + 1.0, trials - k, tail)};
}

}  // namespace deeptail
