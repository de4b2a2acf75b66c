#include "loss/power_gap.h"

#include <array>
#include <cmath>
#include <limits>

namespace deeptail {

namespace {

constexpr int kTerms = 20;

constexpr std::array<double, kTerms + 1> inverse_factorials() {
  std::array<double, kTerms + 1> out{1.0};
  double factorial = 1.0;
  for (int n = 1; n <= kTerms; ++n) out[n] = 1.0 / (factorial *= n);
  return out;
}

// With s = e^t the integral is that of (e^t - 1) e^(a t) from 0 to x, a = 1 - alpha. Expanded in x it is the
// sum over n >= 2 of (b^(n-1) - a^(n-1)) x^n / n! with b = a + 1; the differences d_k = b^k - a^k follow
// d_(k+1) = b d_k + a^k without cancellation. For |x| (|a| + 1) < 1 twenty terms reach double precision.
double small_gap(PowerExponents e, double x) {
  static constexpr auto inverse_factorial = inverse_factorials();
  double difference = 1.0, a_power = e.one_minus, x_power = x * x, sum = 0.0;
  for (int n = 2; n <= kTerms; ++n) {
    sum += difference * x_power * inverse_factorial[n];
    difference = e.two_minus * difference + a_power;
    a_power *= e.one_minus;
    x_power *= x;
  }
  return sum;
}

// Integral from 1 to v of s^(c-1) ds = (v^c - 1) / c; x = ln v. Dividing by a tiny c is harmless because
// expm1 keeps its relative accuracy. Far from 1, v^c is better taken from v than from the rounded logarithm.
double power_integral(double c, double v, double x) {
  if (c == 0.0) return x;
  return std::abs(c * x) < 1.0 ? std::expm1(c * x) / c : (std::pow(v, c) - 1.0) / c;
}

}  // namespace

double power_gap(PowerExponents e, double u, double v) {
  const double x = u > -0.5 && u < 1.0 ? std::log1p(u) : std::log(v);
  if (std::abs(x) * (std::abs(e.one_minus) + 1.0) < 1.0) return small_gap(e, x);
  // The paper's closed form (eq. Beps_closed). Out here neither term exceeds the result by more than
  // a factor max(2/|x|, alpha), so at most two digits cancel for alpha up to 8.
  const double upper = power_integral(e.two_minus, v, x), lower = power_integral(e.one_minus, v, x);
  const bool overflow = !std::isfinite(upper) || !std::isfinite(lower);
  return overflow ? std::numeric_limits<double>::infinity() : upper - lower;
}

}  // namespace deeptail
