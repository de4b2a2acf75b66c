// The distribution functions that estimates and tests need. Boost.Math is compiled in one place, since every
// file that includes it takes seconds more.
#pragma once

namespace deeptail {

// Pr[X > x], X chi-squared with `degrees` degrees of freedom.
double chi_squared_tail(double x, double degrees);
// The x with Pr[X > x] = p.
double chi_squared_upper_quantile(double p, double degrees);

// The same of the standard normal and of Student's t, and the x with Pr[X <= x] = p.
double normal_tail(double x);
double log_normal_tail(double x);  // of far tails, too
double normal_upper_quantile(double p);
double normal_quantile(double p);
double student_t_density(double x, double degrees);
double student_t_tail(double x, double degrees);
double student_t_upper_quantile(double p, double degrees);
double student_t_quantile(double p, double degrees);

// The x with Pr[X <= x] = p, X from Beta(a, b), and the x with Pr[X > x] = p.
double beta_quantile(double a, double b, double p);
double beta_upper_quantile(double a, double b, double p);

}  // namespace deeptail
