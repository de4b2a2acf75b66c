#include <algorithm>
#include <cmath>

#include "core/hypotenuse.h"
#include "model/head/screen.h"

namespace deeptail {

namespace {

constexpr double kUnit = 0x1p-24;
constexpr double kTooLarge = 0x1p100;    // fp32 ends at 2^128
constexpr double kUnderflow = 0x1p-100;  // far above what sums of denormals can lose

// The gamma of a chain of n multiply-adds: twice the roundings where this CPU does not fuse them.
double chain_error(std::size_t n) {
  // x y - fl(x y): what a fused chain leaves and an unfused one loses.
  const float x = 1.0f + 0x1p-12f, a[2] = {1.0f, x};
  const std::vector<float> w = {-(x * x), x};
  float out = 0.0f;
  gemm(1, {a, 2}, PackedMatrix(w, 2, 1), {&out, 1});
  const bool fused = out != 0.0f;
  const double roundings = static_cast<double>(fused ? n : 2 * n) * kUnit;
  return roundings / (1.0 - roundings);
}

// Sums of squares in four lanes, so that the compiler need not wait for each.
struct Squares {
  double lane[4] = {};
  void add(std::size_t k, double x) { lane[k % 4] += x * x; }
  double norm() const { return std::sqrt((lane[0] + lane[1]) + (lane[2] + lane[3])); }
};

}  // namespace

ScreenedRows::ScreenedRows(const Screen::Tables& tables, std::size_t capacity)
    : t_(tables),
      chain_error_(chain_error(tables.d + 1)),
      // row_dots: sixteen chains of d / 16, four additions, then the bias; and the exact chain.
      error_factor_((chain_error_ + chain_error(tables.d / kPanel + 6)) * kBoundSlack),
      z_(tables.d),
      p_(capacity * tables.columns.k(), 0),
      bounds_(capacity),
      x_norm_(capacity),
      clear_below_(capacity) {}

void ScreenedRows::prepare(std::size_t n, ConstRows normed, std::span<const double> ceiling) {
  const std::size_t d = t_.d;
  const auto& largest = t_.largest;
  for (std::size_t i = 0; i < n; ++i) {
    const float* x = normed.row(i);
    Squares x_squares, centred_squares, z_squares, eta_squares;
    float top = 0.0f;
    for (std::size_t k = 0; k < d; ++k) {
      const float centred = x[k] - t_.centre[k];
      z_[k] = centred * t_.stretch[k];
      x_squares.add(k, static_cast<double>(x[k]));
      centred_squares.add(k, static_cast<double>(centred));
      z_squares.add(k, static_cast<double>(z_[k]));
      top = std::max(top, std::abs(z_[k]));
    }
    const double x_norm = x_squares.norm(), centred = centred_squares.norm(), z = z_squares.norm();
    x_norm_[i] = x_norm * kBoundSlack + kUnderflow;
    if (!((x_norm + centred) * (largest.w + 1.0) + z * (largest.q + 1.0) + std::abs(ceiling[i]) <
          kTooLarge)) {
      bounds_[i] = {0.0f, 0.0f, -INFINITY};
      x_norm_[i] = INFINITY, clear_below_[i] = -INFINITY;
      continue;
    }
    const double tau = std::max(static_cast<double>(top), kUnderflow) / kScreenRowMax;
    const auto inverse = static_cast<float>(1.0 / tau);
    std::int8_t* p = p_.data() + i * t_.columns.k();
    for (std::size_t k = 0; k < d; ++k) {
      // Any integer would be correct; this is the nearest, or next to it.
      const float scaled = std::clamp(z_[k] * inverse, -1.0f * kScreenRowMax, 1.0f * kScreenRowMax);
      p[k] = static_cast<std::int8_t>(static_cast<int>(scaled + (scaled < 0.0f ? -0.5f : 0.5f)));
      eta_squares.add(k, static_cast<double>(z_[k]) - tau * p[k]);
    }
    const double eta = eta_squares.norm(), reach = hypotenuse(eta, t_.beta * z) * kBoundSlack;
    const double exact = chain_error_ * (x_norm * largest.w + largest.b);
    // Seven roundings: float(dot), step, scale, two products, two sums; |sigma tau q.p| <= largest.q (z +
    // eta).
    const double kappa = kUnit * largest.w * centred + exact +
                         7.0 * kUnit * (largest.q * (z + eta) + largest.slope * reach + largest.m) +
                         kUnderflow;
    bounds_[i] = {static_cast<float>(tau), rounded_up(reach), rounded_down(ceiling[i] - kappa * kBoundSlack)};
    clear_below_[i] =
        rounded_down(ceiling[i] - error_factor_ * (x_norm_[i] * largest.w + largest.b) * kBoundSlack);
  }
}

void ScreenedRows::move(std::size_t from, std::size_t to) {
  const std::size_t k = t_.columns.k();
  std::copy_n(p_.data() + from * k, k, p_.data() + to * k);
  bounds_[to] = bounds_[from];
  x_norm_[to] = x_norm_[from];
  clear_below_[to] = clear_below_[from];
}

void ScreenedRows::screen(std::size_t n, std::size_t first, std::size_t count, std::uint16_t* bits) const {
  screen_panels(n, p_.data(), bounds_.data(), t_.columns, first, count, bits);
}

}  // namespace deeptail
