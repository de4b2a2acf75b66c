// The one integral behind every SPB quantity.
#pragma once

namespace deeptail {

// Exponents 1 - alpha and 2 - alpha, kept apart so that both are exact next to alpha = 1 and alpha = 2.
struct PowerExponents {
  double one_minus, two_minus;
};

// Integral from 1 to v of (s - 1) s^-alpha ds, for v > 0, given u = v - 1 to full relative accuracy beside v.
double power_gap(PowerExponents e, double u, double v);

}  // namespace deeptail
