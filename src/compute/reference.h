// The kernels in plain scalar code: what each one computes, operation by operation. Tests compare the fast
// ones with it.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <vector>

#include "deeptail/compute.h"

namespace deeptail::reference {

// Sixteen lanes, folded with stride 8, 4, 2, 1: the order of every sum.
inline float fold16(std::array<float, kPanel> lane) {
  for (std::size_t half = kPanel / 2; half > 0; half /= 2)
    for (std::size_t i = 0; i < half; ++i) lane[i] += lane[i + half];
  return lane[0];
}

inline float dot(std::size_t n, const float* a, const float* b) {
  std::array<float, kPanel> lane{};
  for (std::size_t i = 0; i < n; ++i) lane[i % kPanel] = std::fma(a[i], b[i], lane[i % kPanel]);
  return fold16(lane);
}

inline float sum(std::size_t n, const float* a) {
  std::array<float, kPanel> lane{};
  for (std::size_t i = 0; i < n; ++i) lane[i % kPanel] += a[i];
  return fold16(lane);
}

// One element of gemm: a sequential chain over k, then the bias.
inline float gemm_element(const float* a, const PackedMatrix& w, std::size_t column) {
  float acc = 0.0f;
  for (std::size_t k = 0; k < w.k(); ++k) acc = std::fma(a[k], w.at(k, column), acc);
  return acc + w.bias()[column];
}

// The bound of screen_panels.
inline float screen_bound(const std::int8_t* row, const ScreenRow& bound, const ScreenColumns& w,
                          std::size_t column) {
  int dot = 0;
  for (std::size_t k = 0; k < w.k(); ++k) dot += row[k] * w.at(k, column);
  return std::fma(static_cast<float>(dot) * w.step[column], bound.scale,
                  std::fma(w.slope[column], bound.reach, w.offset[column]));
}

inline void layernorm_row(const float* x, const LayerNorm& ln, float* out) {
  const std::size_t n = ln.weight.size();
  const float mean = sum(n, x) / static_cast<float>(n);
  std::vector<float> delta(n);
  for (std::size_t i = 0; i < n; ++i) delta[i] = x[i] - mean;
  const float rstd = 1.0f / std::sqrt(dot(n, delta.data(), delta.data()) / static_cast<float>(n) + ln.eps);
  for (std::size_t i = 0; i < n; ++i) out[i] = std::fma(delta[i] * rstd, ln.weight[i], ln.bias[i]);
}

inline void rms_norm_row(const float* x, const LayerNorm& norm, float* out) {
  const std::size_t n = norm.weight.size();
  const float rstd = 1.0f / std::sqrt(dot(n, x, x) / static_cast<float>(n) + norm.eps);
  for (std::size_t i = 0; i < n; ++i) out[i] = x[i] * rstd * norm.weight[i];
}

inline void rotate_row(std::size_t n_heads, std::size_t d_head, std::size_t half, const float* cosines,
                       const float* sines, float* row) {
  for (std::size_t h = 0; h < n_heads; ++h)
    for (std::size_t i = 0; i < half; ++i) {
      float &a = row[h * d_head + i], &b = row[h * d_head + half + i];
      const float first = std::fma(-b, sines[i], a * cosines[i]);
      b = std::fma(a, sines[i], b * cosines[i]);
      a = first;
    }
}

// Activations and softmax use Highway's exp, so these are the values, not the bits.
inline double gelu(double x) { return 0.5 * x * std::erfc(-x / std::sqrt(2.0)); }
inline double gelu_derivative(double x) {
  return 0.5 * std::erfc(-x / std::sqrt(2.0)) + x * std::exp(-0.5 * x * x) / std::sqrt(2.0 * M_PI);
}

inline double gelu_tanh(double x) {
  return 0.5 * x * (1.0 + std::tanh(std::sqrt(2.0 / M_PI) * (x + 0.044715 * x * x * x)));
}
inline double silu(double x) { return x / (1.0 + std::exp(-x)); }
inline double swiglu(double gate, double up) { return silu(gate) * up; }

inline std::vector<double> softmax(std::span<const float> x, double scale) {
  const double top = *std::max_element(x.begin(), x.end());
  std::vector<double> p(x.size());
  double total = 0.0;
  for (std::size_t i = 0; i < x.size(); ++i) total += p[i] = std::exp(scale * (x[i] - top));
  for (double& v : p) v /= total;
  return p;
}

}  // namespace deeptail::reference
