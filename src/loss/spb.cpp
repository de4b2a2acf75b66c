#include <cmath>
#include <limits>

#include "deeptail/loss.h"
#include "loss/mean.h"
#include "loss/power_gap.h"

namespace deeptail {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct Shifted {
  double q, p;  // truth and estimate plus eps
  double difference;
};

Shifted shifted(const SpbParameters& s, double q, double p) { return {q + s.epsilon, p + s.epsilon, p - q}; }

// base^exponent * factor, also where the power alone would leave the range of a double; never 0 * infinity.
double scaled(double factor, double base, double exponent) {
  if (factor == 0.0 || factor == kInfinity) return factor;
  const double power = std::pow(base, exponent);
  if (std::isnormal(power)) return factor * power;
  const double root = std::pow(base, 0.5 * exponent);
  return factor * root * root;
}

// B at alpha = 3/2: eq. Beps_closed collapses to 2 (sqrt p' - sqrt q')^2 / sqrt p'. Nothing cancels.
double symmetric_pointwise(const SpbParameters& s, double q, double p) {
  const Shifted t = shifted(s, q, p);
  const double root_p = std::sqrt(t.p), gap = t.difference / (root_p + std::sqrt(t.q));
  return 2.0 * gap * gap / root_p;
}

// The integral over relative errors: B = q'^(2 - alpha) * this.
double relative_loss(const SpbParameters& s, const Shifted& t) {
  const PowerExponents e{1.0 - s.alpha, 2.0 - s.alpha};
  if (t.p == 0.0) return s.alpha < 1.0 ? 1.0 / (e.one_minus * e.two_minus) : kInfinity;
  return power_gap(e, t.difference / t.q, t.p / t.q);
}

double general_pointwise(const SpbParameters& s, double q, double p) {
  const Shifted t = shifted(s, q, p);
  const double relative = relative_loss(s, t), exponent = 2.0 - s.alpha;
  // Only p' >> q' with alpha < 2 overflows here while B is finite; then B is its leading term to the last
  // digit.
  if (relative == kInfinity && t.p > t.q) return std::pow(t.p, exponent) / exponent;
  return scaled(relative, t.q, exponent);
}

// The weight q^(alpha-2) cancels the scale of B up to (1 + eps/q)^(2-alpha): eq. scale_neutral_weight.
double general_weighted(const SpbParameters& s, double q, double p) {
  const Shifted t = shifted(s, q, p);
  double loss = relative_loss(s, t);
  if (s.epsilon > 0.0) loss = scaled(loss, 1.0 + s.epsilon / q, 2.0 - s.alpha);
  return s.gamma == 0.0 ? loss : scaled(loss, q, -s.gamma);
}

double symmetric_weighted(const SpbParameters& s, double q, double p) {
  const double loss = symmetric_pointwise(s, q, p) / std::sqrt(q);
  return s.gamma == 0.0 ? loss : scaled(loss, q, -s.gamma);
}

double half_squared(const SpbParameters&, double q, double p) { return 0.5 * (p - q) * (p - q); }

using PointLoss = double (*)(const SpbParameters&, double, double);

template <PointLoss loss>
void for_each(const SpbParameters& s, std::span<const double> q, std::span<const double> p,
              std::span<double> out) {
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = loss(s, q[i], p[i]);
}

}  // namespace

void SpbParameters::validate() const {
  const auto check = [](const char* what, double value) {
    if (!(value >= 0.0) || !std::isfinite(value))
      throw InputError("{} must be a finite number of at least 0, found {}", what, value);
  };
  check("alpha", alpha);
  check("gamma", gamma);
  check("epsilon", epsilon);
}

double spb_pointwise(const SpbParameters& s, double q, double p) {
  if (s.alpha == 1.5) return symmetric_pointwise(s, q, p);
  if (s.alpha == 0.0) return half_squared(s, q, p);
  return general_pointwise(s, q, p);
}

double spb_weighted(const SpbParameters& s, double q, double p) {
  return s.alpha == 1.5 ? symmetric_weighted(s, q, p) : general_weighted(s, q, p);
}

void spb_pointwise(const SpbParameters& s, std::span<const double> q, std::span<const double> p,
                   std::span<double> out) {
  if (s.alpha == 1.5)
    for_each<symmetric_pointwise>(s, q, p, out);
  else if (s.alpha == 0.0)
    for_each<half_squared>(s, q, p, out);
  else
    for_each<general_pointwise>(s, q, p, out);
}

void spb_weighted(const SpbParameters& s, std::span<const double> q, std::span<const double> p,
                  std::span<double> out) {
  if (s.alpha == 1.5)
    for_each<symmetric_weighted>(s, q, p, out);
  else
    for_each<general_weighted>(s, q, p, out);
}

double spb_loss(const SpbParameters& s, std::span<const double> q, std::span<const double> p) {
  return mean_of(q.size(), [&](std::size_t i) { return spb_weighted(s, q[i], p[i]); });
}

}  // namespace deeptail
