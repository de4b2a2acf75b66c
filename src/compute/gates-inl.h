// Activations made of the logistic function s(x) = 1 / (1 + exp(-x)):
//   silu(x) = x s(x), and swiglu = silu(gate) * up;
//   the tanh form of GELU, x/2 (1 + tanh w) = x s(2 w), w = sqrt(2/pi) (x + 0.044715 x^3).
#include "compute/lanes-inl.h"
#include "hwy/contrib/math/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace deeptail::HWY_NAMESPACE {

// Beyond these bounds, which are the ones that Exp takes, s is 0 or 1.
HWY_INLINE V logistic(V x) {
  const D d;
  const V one = hn::Set(d, 1.0f);
  const V power = hn::Max(hn::Min(hn::Neg(x), hn::Set(d, 104.0f)), hn::Set(d, -104.0f));
  return hn::Div(one, hn::Add(one, hn::Exp(d, power)));
}

constexpr float kTwiceSqrt2OverPi = 1.59576912f, kGeluCubic = 0.044715f;

// 2 w and its derivative.
HWY_INLINE V gelu_tanh_power(V x) {
  const D d;
  const V cubic = hn::MulAdd(hn::Mul(hn::Set(d, kGeluCubic), x), x, hn::Set(d, 1.0f));
  return hn::Mul(hn::Mul(hn::Set(d, kTwiceSqrt2OverPi), x), cubic);
}
HWY_INLINE V gelu_tanh_power_slope(V x) {
  const D d;
  const V square = hn::MulAdd(hn::Mul(hn::Set(d, 3.0f * kGeluCubic), x), x, hn::Set(d, 1.0f));
  return hn::Mul(hn::Set(d, kTwiceSqrt2OverPi), square);
}

void gelu_tanh_values(std::size_t n, const float* x, float* out) {
  const auto value = [](V v) { return hn::Mul(v, logistic(gelu_tanh_power(v))); };
  for_each16(n, [&](std::size_t i, std::size_t count) {
    store16(map16(value, load16(x + i, count)), out + i, count);
  });
}

// (x s(p))' = s + x s (1 - s) p'.
void gelu_tanh_gradient(std::size_t n, const float* x, const float* dout, float* dx) {
  const auto value = [](V v, V dy) {
    const V s = logistic(gelu_tanh_power(v));
    const V rest = hn::Mul(hn::Mul(v, s), hn::Sub(hn::Set(D(), 1.0f), s));
    // Far out, where s is 0 or 1, p' times nothing may be infinity times nothing.
    const V slope = hn::Min(gelu_tanh_power_slope(v), hn::Set(D(), 1e4f));
    return hn::Mul(dy, hn::MulAdd(rest, slope, s));
  };
  for_each16(n, [&](std::size_t i, std::size_t count) {
    store16(map16(value, load16(x + i, count), load16(dout + i, count)), dx + i, count);
  });
}

void swiglu_values(std::size_t n, const float* gate, const float* up, float* out) {
  const auto value = [](V g, V u) { return hn::Mul(hn::Mul(g, logistic(g)), u); };
  for_each16(n, [&](std::size_t i, std::size_t count) {
    store16(map16(value, load16(gate + i, count), load16(up + i, count)), out + i, count);
  });
}

// silu' = s + x s (1 - s).
void swiglu_gradient(std::size_t n, const float* gate, const float* up, const float* dout, float* dgate,
                     float* dup) {
  const auto of_gate = [](V g, V u, V dy) {
    const V s = logistic(g), rest = hn::Mul(hn::Mul(g, s), hn::Sub(hn::Set(D(), 1.0f), s));
    return hn::Mul(hn::Mul(dy, u), hn::Add(rest, s));
  };
  const auto of_up = [](V g, V dy) { return hn::Mul(dy, hn::Mul(g, logistic(g))); };
  for_each16(n, [&](std::size_t i, std::size_t count) {
    const Lanes16 g = load16(gate + i, count), u = load16(up + i, count), dy = load16(dout + i, count);
    store16(map16(of_gate, g, u, dy), dgate + i, count);
    store16(map16(of_up, g, dy), dup + i, count);
  });
}

}  // namespace deeptail::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace deeptail {

HWY_EXPORT(gelu_tanh_values);
HWY_EXPORT(gelu_tanh_gradient);
HWY_EXPORT(swiglu_values);
HWY_EXPORT(swiglu_gradient);

void gelu_tanh(std::size_t n, const float* x, float* out) {
  HWY_DYNAMIC_DISPATCH(gelu_tanh_values)(n, x, out);
}

void gelu_tanh_backward(std::size_t n, const float* x, const float* dout, float* dx) {
  HWY_DYNAMIC_DISPATCH(gelu_tanh_gradient)(n, x, dout, dx);
}

void swiglu(std::size_t n, const float* gate, const float* up, float* out) {
  HWY_DYNAMIC_DISPATCH(swiglu_values)(n, gate, up, out);
}

void swiglu_backward(std::size_t n, const float* gate, const float* up, const float* dout, float* dgate,
                     float* dup) {
  HWY_DYNAMIC_DISPATCH(swiglu_gradient)(n, gate, up, dout, dgate, dup);
}

}  // namespace deeptail
#endif
