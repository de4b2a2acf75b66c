#include <algorithm>
#include <functional>

#include "deeptail/report.h"

namespace deeptail {

namespace {

// The diagonal of the covariance, largest first. [d]
std::vector<double> sorted_variances(const Moments& m) {
  std::vector<double> out(m.d);
  for (std::size_t j = 0; j < m.d; ++j) out[j] = m.covariance[j * m.d + j];
  std::sort(out.begin(), out.end(), std::greater<>());
  return out;
}

}  // namespace

WhiteningProfile whitening_profile(const Activations& activations, ThreadPool& pool) {
  const std::size_t fitted = activations.n / 4 * 3, held_out = activations.n - fitted,
                    d = activations.d_model;
  const Whitening w = whitening(moments(fitted, d, activations.rows(), pool));
  const ConstRows second{activations.values.data() + fitted * d, d};
  AlignedVector<float> u(held_out * d);  // [held_out, d]
  w.whiten(held_out, second, {u.data(), d});
  return {.before = sorted_variances(moments(held_out, d, second, pool)),
          .after = sorted_variances(moments(held_out, d, {u.data(), d}, pool))};
}

}  // namespace deeptail
