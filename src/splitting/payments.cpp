// Sums of what particles pay, in logs.
#include <algorithm>

#include "deeptail/splitting.h"

namespace deeptail {

double log_add(double a, double b) {
  const double top = std::max(a, b);
  return std::isinf(top) ? top : top + std::log1p(std::exp(std::min(a, b) - top));
}

double log_mean_payoff(std::span<const double> log_payoffs, std::size_t n) {
  double top = -std::numeric_limits<double>::infinity(), sum = 0.0;
  for (const double v : log_payoffs) top = std::max(top, v);
  if (std::isinf(top)) return top;
  for (const double v : log_payoffs) sum += std::exp(v - top);
  return top + std::log(sum / static_cast<double>(n));
}

}  // namespace deeptail
