// Whitening by a Cholesky factor. The factor is computed here rather than by a library: d is at most a few
// hundred, and these sums give the same bits on every machine and for any number of threads.
#include <cmath>

#include "deeptail/activations.h"

namespace deeptail {

namespace {

// A pivot this far below its diagonal is rounding noise of fp32 activations, not variance.
constexpr double kSingularPivot = 1e-11;

// L of matrix + ridge * I, row by row; false when a pivot is not above floor * the diagonal.
bool cholesky(std::size_t d, const std::vector<double>& matrix, double ridge, double floor,
              std::vector<double>& l) {
  l.assign(d * d, 0.0);
  for (std::size_t i = 0; i < d; ++i)
    for (std::size_t j = 0; j <= i; ++j) {
      double sum = matrix[i * d + j] + (i == j ? ridge : 0.0);
      for (std::size_t k = 0; k < j; ++k) sum -= l[i * d + k] * l[j * d + k];
      if (i == j) {
        if (!(sum > floor * matrix[i * d + i])) return false;
        l[i * d + i] = std::sqrt(sum);
      } else {
        l[i * d + j] = sum / l[j * d + j];
      }
    }
  return true;
}

}  // namespace

Whitening whitening(const Moments& m, double relative_ridge) {
  if (!(relative_ridge >= 0.0)) throw InputError("ridge {}: expected 0 or more", relative_ridge);
  double trace = 0.0;
  for (std::size_t i = 0; i < m.d; ++i) trace += m.covariance[i * m.d + i];
  Whitening out{
      .d = m.d, .mean = m.mean, .l = {}, .ridge = relative_ridge * trace / static_cast<double>(m.d)};
  out.singular = !cholesky(m.d, m.covariance, 0.0, kSingularPivot, out.l);
  if (!cholesky(m.d, m.covariance, out.ridge, 0.0, out.l))
    throw InputError(
        "the activations' covariance is singular even with a ridge of {:.3g} on its diagonal: they hardly "
        "vary, "
        "so no law can be fitted to them",
        out.ridge);
  return out;
}

std::string ridge_warning(const Whitening& w) {
  if (!w.singular) return "";
  return fmt::format(
      "the activations' covariance is singular: a ridge of {:.3g} on its diagonal makes it regular", w.ridge);
}

void Whitening::whiten(std::size_t n, ConstRows x, Rows u) const {
  std::vector<double> y(d);
  for (std::size_t row = 0; row < n; ++row) {
    for (std::size_t i = 0; i < d; ++i) {
      double sum = x.row(row)[i] - mean[i];
      for (std::size_t k = 0; k < i; ++k) sum -= l[i * d + k] * y[k];
      y[i] = sum / l[i * d + i];
    }
    for (std::size_t i = 0; i < d; ++i) u.row(row)[i] = static_cast<float>(y[i]);
  }
}

PackedMatrix Whitening::unwhitening() const {
  std::vector<float> transposed(d * d), bias(mean.begin(), mean.end());
  for (std::size_t i = 0; i < d; ++i)
    for (std::size_t j = 0; j < d; ++j) transposed[j * d + i] = static_cast<float>(l[i * d + j]);
  return {transposed, d, d, bias};
}

std::vector<double> Whitening::dual_direction(std::span<const double> u) const {
  std::vector<double> y(u.begin(), u.end());
  for (std::size_t i = d; i-- > 0;) {
    y[i] /= l[i * d + i];
    for (std::size_t k = 0; k < i; ++k) y[k] -= l[i * d + k] * y[i];
  }
  return y;
}

}  // namespace deeptail
