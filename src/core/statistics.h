// The distribution functions that estimates and tests need. Boost.Math is compiled in one place, since every
// file that includes it takes seconds more.
#pragma once

namespace deeptail {

// Pr[X > x], X chi-squared with `degrees` degrees of freedom.
double chi_squared_tail(double x, double degrees);
// The x with Pr[X > x] = p.
double chi_squared_upper_quantile(double p, double degrees);

// The x with Pr[X <= x] = p for the standard normal and for Student's t.
double normal_quantile(double p);
double student_t_quantile(double p, double degrees);

// The x with Pr[X <= x] = p, X from Beta(a, b), and the x with Pr[X > x] = p.
double beta_quantile(double a, double b, double p);
double beta_upper_quantile(double a, double b, double p);

}  // namespace deeptail
