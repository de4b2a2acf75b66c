// Exact GELU, x Phi(x), without the cancellation of 1 + erf in the left tail:
//   gelu(x) = max(x, 0) - tail(|x|),   tail(a) = a/2 erfc(a/sqrt 2) = a/2 exp(-a^2/2) E(a),
// E smooth, a polynomial in t = 1/(1 + 0.35 a) (tests/reference/gelu_coefficients.py fits it; relative error
// 4e-8).
#include "compute/lanes-inl.h"
#include "hwy/contrib/math/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace deeptail::HWY_NAMESPACE {

struct NormalTail {
  V density;  // exp(-a^2/2)
  V half;     // erfc(a/sqrt 2) / 2: the standard normal's upper tail
};

HWY_INLINE NormalTail normal_tail(V a) {
  const D d;
  static constexpr float kE[] = {-0.0591219924f, 0.291865528f, -0.519258201f, 0.32694003f, -0.0518633053f,
                                 0.213277906f,   0.239128098f, 0.279792726f,  0.279239148f};
  const V one = hn::Set(d, 1.0f);
  const V t = hn::Div(one, hn::MulAdd(a, hn::Set(d, 0.35f), one));
  V e = hn::Set(d, kE[0]);
  for (std::size_t i = 1; i < std::size(kE); ++i) e = hn::MulAdd(e, t, hn::Set(d, kE[i]));
  const V half = hn::Set(d, 0.5f);
  const V density = hn::Exp(d, hn::Mul(hn::Mul(a, hn::Neg(half)), a));
  return {density, hn::Mul(hn::Mul(half, density), hn::Mul(e, t))};
}

void gelu_values(std::size_t n, const float* x, float* out) {
  const V zero = hn::Zero(D());
  const auto value = [&](V v) {
    const V a = hn::Abs(v);
    return hn::NegMulAdd(a, normal_tail(a).half, hn::Max(v, zero));
  };
  for_each16(n, [&](std::size_t i, std::size_t count) {
    store16(map16(value, load16(x + i, count)), out + i, count);
  });
}

// gelu'(x) = Phi(x) + x phi(x).
void gelu_gradient(std::size_t n, const float* x, const float* dout, float* dx) {
  const D d;
  const V one = hn::Set(d, 1.0f), inv_sqrt_2pi = hn::Set(d, 0.398942280f);
  const auto value = [&](V v, V dy) {
    const NormalTail tail = normal_tail(hn::Abs(v));
    const V cdf = hn::IfThenElse(hn::Lt(v, hn::Zero(d)), tail.half, hn::Sub(one, tail.half));
    return hn::Mul(dy, hn::MulAdd(v, hn::Mul(tail.density, inv_sqrt_2pi), cdf));
  };
  for_each16(n, [&](std::size_t i, std::size_t count) {
    store16(map16(value, load16(x + i, count), load16(dout + i, count)), dx + i, count);
  });
}

}  // namespace deeptail::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace deeptail {

HWY_EXPORT(gelu_values);
HWY_EXPORT(gelu_gradient);

void gelu(std::size_t n, const float* x, float* out) { HWY_DYNAMIC_DISPATCH(gelu_values)(n, x, out); }

void gelu_backward(std::size_t n, const float* x, const float* dout, float* dx) {
  HWY_DYNAMIC_DISPATCH(gelu_gradient)(n, x, dout, dx);
}

}  // namespace deeptail
#endif
