#include <algorithm>
#include <cassert>
#include <cmath>

#include "deeptail/compute.h"

namespace deeptail {

PackedMatrix::PackedMatrix(std::span<const float> values, std::size_t k, std::size_t n,
                           std::span<const float> bias)
    : k_(k), n_(n), panels_(round_up(n, kPanel) * k, 0.0f), bias_(round_up(n, kPanel), 0.0f) {
  assert(values.size() == k * n && (bias.empty() || bias.size() == n));
  for (std::size_t column = 0; column < n; column += kPanel) {
    float* out = panels_.data() + column * k;
    const std::size_t width = std::min(kPanel, n - column);
    for (std::size_t row = 0; row < k; ++row)
      for (std::size_t lane = 0; lane < width; ++lane)
        out[row * kPanel + lane] = values[row * n + column + lane];
  }
  finish(values, bias);
}

PackedMatrix PackedMatrix::of_transposed(std::span<const float> values, std::size_t k, std::size_t n,
                                         std::span<const float> bias) {
  assert(values.size() == k * n && (bias.empty() || bias.size() == n));
  PackedMatrix out;
  out.k_ = k, out.n_ = n;
  out.panels_.resize(round_up(n, kPanel) * k, 0.0f);
  out.bias_.resize(round_up(n, kPanel), 0.0f);
  for (std::size_t column = 0; column < n; ++column)
    for (std::size_t row = 0; row < k; ++row)
      out.panels_[(column / kPanel) * k * kPanel + row * kPanel + column % kPanel] = values[column * k + row];
  out.finish(values, bias);
  return out;
}

void PackedMatrix::finish(std::span<const float> values, std::span<const float> bias) {
  std::copy(bias.begin(), bias.end(), bias_.begin());
  for (const float value : values) largest_ = std::max(largest_, std::abs(value));
  for (const float value : bias) largest_ = std::max(largest_, std::abs(value));
}

PackedMatrix PackedMatrix::transposed() const {
  std::vector<float> values(k_ * n_);  // [n, k]
  for (std::size_t row = 0; row < k_; ++row)
    for (std::size_t column = 0; column < n_; ++column) values[column * k_ + row] = at(row, column);
  return PackedMatrix(values, n_, k_);
}

PackedMatrix PackedMatrix::columns(std::span<const std::int32_t> ids) const {
  std::vector<float> values(k_ * ids.size()), bias(ids.size());
  for (std::size_t j = 0; j < ids.size(); ++j) {
    const auto column = static_cast<std::size_t>(ids[j]);
    assert(column < n_);
    for (std::size_t row = 0; row < k_; ++row) values[row * ids.size() + j] = at(row, column);
    bias[j] = bias_[column];
  }
  return PackedMatrix(values, k_, ids.size(), bias);
}

}  // namespace deeptail
