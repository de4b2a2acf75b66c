// RMS norm: x / sqrt(mean x^2 + eps) * weight. Called by way of layernorm (layernorm-inl.h), so that every
// place that takes a norm takes either.
#include "compute/lanes-inl.h"

#include <cmath>

HWY_BEFORE_NAMESPACE();
namespace deeptail::HWY_NAMESPACE {

void rms_norm_rows(std::size_t m, ConstRows x, const LayerNorm& norm, Rows out, float* mean_rstd) {
  const std::size_t n = norm.weight.size();
  for (std::size_t row = 0; row < m; ++row) {
    const float* in = x.row(row);
    Lanes16 sum = zero16();
    for_each16(n, [&](std::size_t i, std::size_t count) {
      const Lanes16 v = load16(in + i, count);
      sum = map16([](V s, V a) { return hn::MulAdd(a, a, s); }, sum, v);
    });
    const float rstd = 1.0f / std::sqrt(fold16(sum, AddOp()) / static_cast<float>(n) + norm.eps);
    const V vr = hn::Set(D(), rstd);
    for_each16(n, [&](std::size_t i, std::size_t count) {
      const Lanes16 y = map16([&](V v, V w) { return hn::Mul(hn::Mul(v, vr), w); }, load16(in + i, count),
                              load16(norm.weight.data() + i, count));
      store16(y, out.row(row) + i, count);
    });
    if (mean_rstd != nullptr) mean_rstd[2 * row] = 0.0f, mean_rstd[2 * row + 1] = rstd;
  }
}

// With y = x rstd and g = dout * weight: dx = rstd (g - y mean(g y)).
void rms_norm_backward_rows(std::size_t m, ConstRows x, const float* mean_rstd, const LayerNorm& norm,
                            ConstRows dout, Rows dx) {
  const std::size_t n = norm.weight.size();
  for (std::size_t row = 0; row < m; ++row) {
    const V rstd = hn::Set(D(), mean_rstd[2 * row + 1]);
    const auto y_of = [&](std::size_t i, std::size_t count) {
      return map16([&](V v) { return hn::Mul(v, rstd); }, load16(x.row(row) + i, count));
    };
    const auto g_of = [&](std::size_t i, std::size_t count) {
      return map16([](V a, V b) { return hn::Mul(a, b); }, load16(dout.row(row) + i, count),
                   load16(norm.weight.data() + i, count));
    };
    Lanes16 sum = zero16();
    for_each16(n, [&](std::size_t i, std::size_t count) {
      sum = map16([](V s, V a, V b) { return hn::MulAdd(a, b, s); }, sum, g_of(i, count), y_of(i, count));
    });
    const V mean_gy = hn::Set(D(), fold16(sum, AddOp()) / static_cast<float>(n));
    for_each16(n, [&](std::size_t i, std::size_t count) {
      const auto step = [&](V old, V g, V y) { return hn::MulAdd(rstd, hn::NegMulAdd(y, mean_gy, g), old); };
      const Lanes16 total = map16(step, load16(dx.row(row) + i, count), g_of(i, count), y_of(i, count));
      store16(total, dx.row(row) + i, count);
    });
  }
}

}  // namespace deeptail::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace deeptail {
HWY_EXPORT(rms_norm_rows);
HWY_EXPORT(rms_norm_backward_rows);
}  // namespace deeptail
#endif
