// What independent draws from the prior say.
#include <algorithm>

#include "core/statistics.h"
#include "deeptail/splitting.h"

namespace deeptail {

FirstDraw hits_among(std::span<const double> scores, double threshold) {
  const auto hits = std::count_if(scores.begin(), scores.end(), [&](double s) { return s >= threshold; });
  return {scores.size(), static_cast<std::size_t>(hits)};
}

FirstDraw& FirstDraw::operator+=(const FirstDraw& other) {
  n += other.n;
  hits += other.hits;
  log_most = std::max(log_most, other.log_most);
  return *this;
}

double FirstDraw::log_upper(double confidence) const {
  if (hits >= n) return 0.0;
  const auto h = static_cast<double>(hits), misses = static_cast<double>(n - hits);
  return std::min(0.0, log_most + std::log(beta_upper_quantile(h + 1.0, misses, 1.0 - confidence)));
}

}  // namespace deeptail
