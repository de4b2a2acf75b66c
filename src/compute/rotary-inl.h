// Rotary positions: pairs (a, b) of values half a rotated part apart turn together,
//   a <- fma(-b, sin, a cos),   b <- fma(a, sin, b cos).
#include "compute/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace deeptail::HWY_NAMESPACE {

// sign: 1, or -1 for the way back.
void rotate_heads(std::size_t n_heads, std::size_t d_head, std::size_t half, const float* cosines,
                  const float* sines, float sign, float* row) {
  const V turn = hn::Set(D(), sign);
  for (std::size_t h = 0; h < n_heads; ++h) {
    float *first = row + h * d_head, *second = first + half;
    for_each16(half, [&](std::size_t i, std::size_t count) {
      const Lanes16 a = load16(first + i, count), b = load16(second + i, count);
      const Lanes16 c = load16(cosines + i, count);
      const Lanes16 s = map16([&](V v) { return hn::Mul(v, turn); }, load16(sines + i, count));
      const auto left = [](V x, V y, V cv, V sv) { return hn::NegMulAdd(y, sv, hn::Mul(x, cv)); };
      const auto right = [](V x, V y, V cv, V sv) { return hn::MulAdd(x, sv, hn::Mul(y, cv)); };
      store16(map16(left, a, b, c, s), first + i, count);
      store16(map16(right, a, b, c, s), second + i, count);
    });
  }
}

}  // namespace deeptail::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace deeptail {

HWY_EXPORT(rotate_heads);

void rotate(std::size_t n_heads, std::size_t d_head, std::size_t half, const float* cosines,
            const float* sines, float* row) {
  HWY_DYNAMIC_DISPATCH(rotate_heads)(n_heads, d_head, half, cosines, sines, 1.0f, row);
}

void rotate_back(std::size_t n_heads, std::size_t d_head, std::size_t half, const float* cosines,
                 const float* sines, float* row) {
  HWY_DYNAMIC_DISPATCH(rotate_heads)(n_heads, d_head, half, cosines, sines, -1.0f, row);
}

}  // namespace deeptail
#endif
