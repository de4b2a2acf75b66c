#include <cmath>

#include "deeptail/loss.h"
#include "loss/power_gap.h"

namespace deeptail {

double i_fp(double alpha, double m) { return power_gap({1.0 - alpha, 2.0 - alpha}, m - 1.0, m); }

// By the identity I_FN(alpha, m) = I_FP(3 - alpha, m), with the exponents formed from alpha directly.
double i_fn(double alpha, double m) { return power_gap({alpha - 2.0, alpha - 1.0}, m - 1.0, m); }

double asymmetry_ratio(double alpha, double m) { return i_fn(alpha, m) / i_fp(alpha, m); }

// Paragraph "Computing alpha*": R_alpha(m0) rises strictly from 1 at alpha = 3/2.
double alpha_for_ratio(double ratio, double m0, double tolerance) {
  if (!(ratio > 1.0) || !std::isfinite(ratio))
    throw InputError("the FN/FP ratio must be a finite number above 1, found {}", ratio);
  if (!(m0 > 1.0) || !std::isfinite(m0)) throw InputError("m0 must be a finite factor above 1, found {}", m0);
  constexpr double kLargest = 1e9;
  double low = 1.5, high = 2.0;
  while (asymmetry_ratio(high, m0) < ratio) {
    if (high > kLargest)
      throw InputError("no alpha below {:g} reaches the FN/FP ratio {} at m0 = {}: take a larger m0",
                       kLargest, ratio, m0);
    low = high;
    high *= 2.0;
  }
  while (high - low > tolerance) {
    const double middle = 0.5 * (low + high);
    if (middle <= low || middle >= high) break;  // no double in between
    (asymmetry_ratio(middle, m0) < ratio ? low : high) = middle;
  }
  return high;
}

}  // namespace deeptail
