#include "compute/lanes-inl.h"

#include <cmath>

HWY_BEFORE_NAMESPACE();
namespace deeptail::HWY_NAMESPACE {

float mean_of(std::size_t n, const float* x) {
  Lanes16 sum = zero16();
  for_each16(n, [&](std::size_t i, std::size_t count) { sum = map16(AddOp(), sum, load16(x + i, count)); });
  return fold16(sum, AddOp()) / static_cast<float>(n);
}

// Sum of squared deviations in a second pass: no digits are lost when the mean is large.
float variance_of(std::size_t n, const float* x, float mean) {
  const V m = hn::Set(D(), mean);
  Lanes16 sum = zero16();
  for_each16(n, [&](std::size_t i, std::size_t count) {
    Lanes16 delta = map16([&](V v) { return hn::Sub(v, m); }, load16(x + i, count));
    if (HWY_UNLIKELY(count < kPanel)) {
      HWY_ALIGN float lane[kPanel];
      store16(delta, lane);
      delta = load16_first(lane, count);
    }
    sum = map16([](V s, V v) { return hn::MulAdd(v, v, s); }, sum, delta);
  });
  return fold16(sum, AddOp()) / static_cast<float>(n);
}

void layernorm_rows(std::size_t m, ConstRows x, const LayerNorm& ln, Rows out, float* mean_rstd) {
  const std::size_t n = ln.weight.size();
  for (std::size_t row = 0; row < m; ++row) {
    const float* in = x.row(row);
    const float mean = mean_of(n, in);
    const float rstd = 1.0f / std::sqrt(variance_of(n, in, mean) + ln.eps);
    const V vm = hn::Set(D(), mean), vr = hn::Set(D(), rstd);
    const auto normalise = [&](V v, V w, V b) { return hn::MulAdd(hn::Mul(hn::Sub(v, vm), vr), w, b); };
    for_each16(n, [&](std::size_t i, std::size_t count) {
      const Lanes16 y = map16(normalise, load16(in + i, count), load16(ln.weight.data() + i, count),
                              load16(ln.bias.data() + i, count));
      store16(y, out.row(row) + i, count);
    });
    if (mean_rstd != nullptr) mean_rstd[2 * row] = mean, mean_rstd[2 * row + 1] = rstd;
  }
}

// With y = (x - mean) rstd and g = dout * weight: dx = rstd (g - mean(g) - y mean(g y)).
void layernorm_backward_rows(std::size_t m, ConstRows x, const float* mean_rstd, const LayerNorm& ln,
                             ConstRows dout, Rows dx) {
  const std::size_t n = ln.weight.size();
  for (std::size_t row = 0; row < m; ++row) {
    const V mean = hn::Set(D(), mean_rstd[2 * row]), rstd = hn::Set(D(), mean_rstd[2 * row + 1]);
    const auto y_of = [&](std::size_t i, std::size_t count) {
      return map16([&](V v) { return hn::Mul(hn::Sub(v, mean), rstd); }, load16(x.row(row) + i, count));
    };
    const auto g_of = [&](std::size_t i, std::size_t count) {
      return map16([](V a, V b) { return hn::Mul(a, b); }, load16(dout.row(row) + i, count),
                   load16(ln.weight.data() + i, count));
    };
    Lanes16 sum_g = zero16(), sum_gy = zero16();  // g is zero in the padding, so y there does not matter
    for_each16(n, [&](std::size_t i, std::size_t count) {
      const Lanes16 g = g_of(i, count);
      sum_g = map16(AddOp(), sum_g, g);
      sum_gy = map16([](V s, V a, V b) { return hn::MulAdd(a, b, s); }, sum_gy, g, y_of(i, count));
    });
    const V mean_g = hn::Set(D(), fold16(sum_g, AddOp()) / static_cast<float>(n));
    const V mean_gy = hn::Set(D(), fold16(sum_gy, AddOp()) / static_cast<float>(n));
    for_each16(n, [&](std::size_t i, std::size_t count) {
      const auto step = [&](V old, V g, V y) {
        return hn::MulAdd(rstd, hn::NegMulAdd(y, mean_gy, hn::Sub(g, mean_g)), old);
      };
      const Lanes16 sum = map16(step, load16(dx.row(row) + i, count), g_of(i, count), y_of(i, count));
      store16(sum, dx.row(row) + i, count);
    });
  }
}

}  // namespace deeptail::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace deeptail {

HWY_EXPORT(layernorm_rows);
HWY_EXPORT(layernorm_backward_rows);

void layernorm(std::size_t m, ConstRows x, const LayerNorm& ln, Rows out, float* mean_rstd) {
  if (ln.centred)
    HWY_DYNAMIC_DISPATCH(layernorm_rows)(m, x, ln, out, mean_rstd);
  else
    HWY_DYNAMIC_DISPATCH(rms_norm_rows)(m, x, ln, out, mean_rstd);
}

void layernorm_backward(std::size_t m, ConstRows x, const float* mean_rstd, const LayerNorm& ln,
                        ConstRows dout, Rows dx) {
  if (ln.centred)
    HWY_DYNAMIC_DISPATCH(layernorm_backward_rows)(m, x, mean_rstd, ln, dout, dx);
  else
    HWY_DYNAMIC_DISPATCH(rms_norm_backward_rows)(m, x, mean_rstd, ln, dout, dx);
}

}  // namespace deeptail
#endif
