#include "core/statistics.h"

#include <boost/math/distributions/chi_squared.hpp>
#include <boost/math/special_functions/beta.hpp>

namespace deeptail {

double chi_squared_tail(double x, double degrees) {
  return cdf(complement(boost::math::chi_squared(degrees), x));
}

double beta_quantile(double a, double b, double p) { return boost::math::ibeta_inv(a, b, p); }
double beta_upper_quantile(double a, double b, double p) { return boost::math::ibetac_inv(a, b, p); }

}  // namespace deeptail
