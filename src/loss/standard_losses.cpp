#include <cmath>

#include "deeptail/loss.h"
#include "loss/mean.h"

namespace deeptail {

double squared_error(double q, double p) { return (p - q) * (p - q); }

double log_squared_error(double q, double p) {
  const double u = (p - q) / q;
  const double x = u > -0.5 && u < 1.0 ? std::log1p(u) : std::log(p / q);
  return x * x;
}

// SPB at alpha = 2, eps = 0 is Itakura-Saito exactly (appendix "Connections to standard losses"), and B
// carries no scale there.
double itakura_saito(double q, double p) { return spb_pointwise({.alpha = 2.0}, q, p); }

StandardLosses standard_losses(std::span<const double> q, std::span<const double> p) {
  const auto mean = [&](auto loss) {
    return mean_of(q.size(), [&](std::size_t i) { return loss(q[i], p[i]); });
  };
  return {mean(squared_error), mean(log_squared_error), mean(itakura_saito)};
}

}  // namespace deeptail
