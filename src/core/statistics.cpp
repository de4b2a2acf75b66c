#include "core/statistics.h"

#include <boost/math/distributions/chi_squared.hpp>
#include <boost/math/distributions/normal.hpp>
#include <boost/math/distributions/students_t.hpp>
#include <boost/math/special_functions/beta.hpp>

namespace deeptail {

double chi_squared_tail(double x, double degrees) {
  return cdf(complement(boost::math::chi_squared(degrees), x));
}

double chi_squared_upper_quantile(double p, double degrees) {
  return quantile(complement(boost::math::chi_squared(degrees), p));
}
double normal_quantile(double p) { return quantile(boost::math::normal(), p); }
double student_t_quantile(double p, double degrees) { return quantile(boost::math::students_t(degrees), p); }

double beta_quantile(double a, double b, double p) { return boost::math::ibeta_inv(a, b, p); }
double beta_upper_quantile(double a, double b, double p) { return boost::math::ibetac_inv(a, b, p); }

}  // namespace deeptail
