#include "compute/lanes-inl.h"
#include "hwy/contrib/math/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace deeptail::HWY_NAMESPACE {

float largest(std::size_t n, const float* x) {
  Lanes16 top;
  for (V& v : top.v) v = hn::Set(D(), x[0]);
  std::size_t i = 0;
  for (; i + kPanel <= n; i += kPanel) top = map16(MaxOp(), top, load16(x + i));
  float best = fold16(top, MaxOp());
  for (; i < n; ++i) best = std::max(best, x[i]);
  return best;
}

void softmax_row(std::size_t n, float scale, float* row) {
  const D d;
  const V top = hn::Set(d, largest(n, row)), vscale = hn::Set(d, scale);
  Lanes16 sum = zero16();
  for_each16(n, [&](std::size_t i, std::size_t count) {
    Lanes16 e =
        map16([&](V v) { return hn::Exp(d, hn::Mul(vscale, hn::Sub(v, top))); }, load16(row + i, count));
    store16(e, row + i, count);
    if (HWY_UNLIKELY(count < kPanel)) e = load16_first(row + i, count);
    sum = map16(AddOp(), sum, e);
  });
  const V inverse = hn::Set(d, 1.0f / fold16(sum, AddOp()));
  for_each16(n, [&](std::size_t i, std::size_t count) {
    store16(map16([&](V v) { return hn::Mul(v, inverse); }, load16(row + i, count)), row + i, count);
  });
}

void softmax_gradient(std::size_t n, float scale, const float* p, float* dp) {
  const D d;
  Lanes16 sum = zero16();
  for_each16(n, [&](std::size_t i, std::size_t count) {
    sum = map16([](V s, V a, V b) { return hn::MulAdd(a, b, s); }, sum, load16(p + i, count),
                load16(dp + i, count));
  });
  const V mean = hn::Set(d, fold16(sum, AddOp())), vscale = hn::Set(d, scale);
  for_each16(n, [&](std::size_t i, std::size_t count) {
    const auto step = [&](V pv, V dv) { return hn::Mul(hn::Mul(vscale, pv), hn::Sub(dv, mean)); };
    store16(map16(step, load16(p + i, count), load16(dp + i, count)), dp + i, count);
  });
}

Best best_value(std::size_t n, const float* values) {
  if (n == 0) return {0.0f, 0};
  const float top = largest(n, values);
  std::size_t index = 0;
  while (index + 1 < n && !(values[index] == top)) ++index;
  return {top, index};
}

}  // namespace deeptail::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace deeptail {

HWY_EXPORT(softmax_row);
HWY_EXPORT(softmax_gradient);
HWY_EXPORT(best_value);

void softmax(std::size_t n, float scale, float* row) { HWY_DYNAMIC_DISPATCH(softmax_row)(n, scale, row); }

void softmax_backward(std::size_t n, float scale, const float* p, float* dp) {
  HWY_DYNAMIC_DISPATCH(softmax_gradient)(n, scale, p, dp);
}

Best best_of(std::size_t n, const float* values) { return HWY_DYNAMIC_DISPATCH(best_value)(n, values); }

}  // namespace deeptail
#endif
