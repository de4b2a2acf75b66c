#include "splitting/lognormal_mean.h"

#include <cmath>
#include <numbers>
#include <vector>

namespace deeptail {

namespace {

// The law of T - mean. Given V it is normal; over w = log V, whose density exp((n - 1) / 2 (w - e^w)) is
// smooth and falls off fast, the trapezoidal rule is as good as exact (with 2 draws and a large variance: to
// 1e-3).
class PivotLaw {
 public:
  PivotLaw(double variance, std::size_t n) : sd_(std::sqrt(variance)), root_n_(std::sqrt(n)) {
    constexpr double kStep = 0.1;      // of the standard deviation of w, about
    constexpr double kNothing = 40.0;  // e^-40 of the density's top
    const double degrees = static_cast<double>(n - 1), step = kStep * std::sqrt(2.0 / degrees);
    double sum = 0.0;
    const auto add = [&](double w) {
      const double log_density = 0.5 * degrees * (w - std::exp(w) + 1.0);
      if (log_density < -kNothing) return false;
      nodes_.push_back({std::exp(0.5 * w), std::exp(log_density)});
      sum += nodes_.back().weight;
      return true;
    };
    for (int i = 0; add(step * i);) ++i;
    for (int i = 1; add(-step * i);) ++i;
    for (Node& node : nodes_) node.weight /= sum;
  }

  double quantile(double p) const {
    double low = -sd_, high = sd_;
    while (chance_below(low) > p) low *= 2.0;
    while (chance_below(high) < p) high *= 2.0;
    for (int i = 0; i < kHalvings; ++i) {
      const double middle = 0.5 * (low + high);
      (chance_below(middle) < p ? low : high) = middle;
    }
    return 0.5 * (low + high);
  }

 private:
  static constexpr int kHalvings = 40;
  struct Node {
    double root_v, weight;
  };

  double chance_below(double t) const {
    double sum = 0.0;
    for (const Node& node : nodes_) {
      const double z = root_n_ * (t * node.root_v / sd_ - 0.5 * sd_ / node.root_v);
      sum += node.weight * 0.5 * std::erfc(-z / std::numbers::sqrt2);
    }
    return sum;
  }

  double sd_, root_n_;
  std::vector<Node> nodes_;
};

}  // namespace

double lognormal_mean_upper(double mean, double variance, std::size_t n, double confidence) {
  return variance > 0.0 ? mean + PivotLaw(variance, n).quantile(confidence) : mean;
}

}  // namespace deeptail
