#include <algorithm>
#include <cmath>

#include "compute/normals.h"
#include "deeptail/prior.h"

namespace deeptail {

namespace {

// A sum of `count` unit exponentials for one dimension, from 32-bit words: minus the log of a product of
// uniforms.
double exponentials(RngKey key, std::uint64_t index, std::size_t dimension, std::uint32_t count) {
  const auto blocks = (count + 3) / 4;  // four words each
  double product = 1.0, sum = 0.0;
  for (std::uint32_t block = 0; block < blocks; ++block) {
    const auto words = uniform64_pair(key, index, static_cast<std::uint32_t>(dimension) * blocks + block);
    for (std::uint32_t i = 0; i < std::min(4u, count - 4 * block); ++i)
      product *=
          (static_cast<double>(static_cast<std::uint32_t>(words[i / 2] >> (32 * (i % 2)))) + 0.5) * 0x1p-32;
    if (product < 1e-200) sum -= std::log(product), product = 1.0;
  }
  return sum - std::log(product);
}

}  // namespace

ProductPrior::ProductPrior(PriorKind kind, std::size_t dim, int nu)
    : kind_(kind),
      dim_(dim),
      nu_(nu),
      scale_(kind == PriorKind::kStudentTMatched ? std::sqrt((nu - 2.0) / nu) : 1.0) {
  if (dim == 0) throw InputError("prior: expected at least one dimension");
  if (nu < 3 || nu % 2 == 0) throw InputError("prior: nu {}: expected an odd number from 3", nu);
}

void ProductPrior::sample(std::uint64_t seed, std::uint64_t first, std::size_t n, Rows out) const {
  std::vector<float> squares(dim_);
  const auto exponents = static_cast<std::uint32_t>((nu_ - 1) / 2);
  for (std::size_t i = 0; i < n; ++i) {
    float* row = out.row(i);
    fill_normals({seed, Stream::kPriorNormals}, first + i, dim_, row);
    if (gaussian()) continue;
    // chi-squared with nu degrees of freedom: a squared normal and twice (nu - 1) / 2 exponentials.
    fill_normals({seed, Stream::kPriorSquares}, first + i, dim_, squares.data());
    for (std::size_t j = 0; j < dim_; ++j) {
      const double chi2 = static_cast<double>(squares[j]) * squares[j] +
                          2.0 * exponentials({seed, Stream::kPriorExponentials}, first + i, j, exponents);
      row[j] = static_cast<float>(scale_ * row[j] / std::sqrt(chi2 / nu_));
    }
  }
}

void ProductPrior::log_density(std::size_t n, ConstRows u, std::span<double> log_p) const {
  for (std::size_t i = 0; i < n; ++i) {
    if (gaussian()) {
      double sum[4] = {};
      for (std::size_t j = 0; j < dim_; ++j) sum[j % 4] += static_cast<double>(u.row(i)[j]) * u.row(i)[j];
      log_p[i] = -0.5 * ((sum[0] + sum[1]) + (sum[2] + sum[3]));
    } else {
      const auto factor = static_cast<float>(1.0 / (nu_ * scale_ * scale_));
      log_p[i] = -0.5 * (nu_ + 1.0) * sum_log1p_squares(dim_, u.row(i), factor);
    }
  }
}

void ProductPrior::grad_log_density(std::size_t n, ConstRows u, Rows out) const {
  const auto width = static_cast<float>(nu_ * scale_ * scale_), power = static_cast<float>(-(nu_ + 1.0));
  for (std::size_t i = 0; i < n; ++i) {
    const float* row = u.row(i);
    float* gradient = out.row(i);
    if (gaussian())
      for (std::size_t j = 0; j < dim_; ++j) gradient[j] = -row[j];
    else
      for (std::size_t j = 0; j < dim_; ++j) gradient[j] = power * row[j] / (width + row[j] * row[j]);
  }
}

void ProductPrior::sample_mixing(std::uint64_t seed, std::uint64_t index, const float* u, float* w) const {
  // w given u is Gamma((nu + 1) / 2) with rate (nu + (u / scale)^2) / 2; a whole shape, as nu is odd.
  const auto shape = static_cast<std::uint32_t>((nu_ + 1) / 2);
  const double inverse = 1.0 / (scale_ * scale_);
  for (std::size_t j = 0; j < dim_; ++j)
    w[j] = static_cast<float>(exponentials({seed, Stream::kMixing}, index, j, shape) * 2.0 /
                              (nu_ + inverse * u[j] * u[j]));
}

}  // namespace deeptail
