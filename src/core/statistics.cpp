#include "core/statistics.h"

#include <boost/math/distributions/chi_squared.hpp>
#include <boost/math/distributions/normal.hpp>
#include <boost/math/distributions/students_t.hpp>
#include <boost/math/special_functions/beta.hpp>
#include <cmath>

namespace deeptail {

namespace {

// In double throughout, good to 1e-13 or so: by way of long double it would take twice as long to compile.
using Policy = boost::math::policies::policy<boost::math::policies::promote_double<false>>;
using ChiSquared = boost::math::chi_squared_distribution<double, Policy>;
using Normal = boost::math::normal_distribution<double, Policy>;
using StudentT = boost::math::students_t_distribution<double, Policy>;

}  // namespace

double chi_squared_tail(double x, double degrees) { return cdf(complement(ChiSquared(degrees), x)); }
double chi_squared_upper_quantile(double p, double degrees) {
  return quantile(complement(ChiSquared(degrees), p));
}

double normal_tail(double x) { return cdf(complement(Normal(), x)); }
double log_normal_tail(double x) {
  if (x < 30.0) return std::log(0.5 * std::erfc(x / std::sqrt(2.0)));
  const double t = 1.0 / (x * x);  // asymptotic: the first terms are exact to 1e-8 here
  return -0.5 * x * x - std::log(x * std::sqrt(2.0 * M_PI)) + std::log1p(-t + 3.0 * t * t - 15.0 * t * t * t);
}
double normal_upper_quantile(double p) { return quantile(complement(Normal(), p)); }
double normal_quantile(double p) { return quantile(Normal(), p); }

double student_t_density(double x, double degrees) { return pdf(StudentT(degrees), x); }
double student_t_tail(double x, double degrees) { return cdf(complement(StudentT(degrees), x)); }
double student_t_upper_quantile(double p, double degrees) {
  return quantile(complement(StudentT(degrees), p));
}
double student_t_quantile(double p, double degrees) { return quantile(StudentT(degrees), p); }

double beta_quantile(double a, double b, double p) { return boost::math::ibeta_inv(a, b, p, Policy()); }
double beta_upper_quantile(double a, double b, double p) {
  return boost::math::ibetac_inv(a, b, p, Policy());
}

}  // namespace deeptail
