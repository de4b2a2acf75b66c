// Rotary positions: pairs (a, b) of values half a rotated part apart turn together,
//   a <- fma(-b, sin, a cos),   b <- fma(a, sin, b cos).
#include "compute/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace deeptail::HWY_NAMESPACE {

// kCount pairs at once; each value is the same whatever the count.
template <std::size_t kCount>
HWY_INLINE void rotate_pairs(const float* cosines, const float* sines, float sign, float* first,
                             float* second) {
  const hn::CappedTag<float, kCount> d;
  for (std::size_t i = 0; i < kCount; i += hn::MaxLanes(d)) {
    const auto a = hn::LoadU(d, first + i), b = hn::LoadU(d, second + i), c = hn::LoadU(d, cosines + i);
    const auto s = hn::Mul(hn::LoadU(d, sines + i), hn::Set(d, sign));
    hn::StoreU(hn::NegMulAdd(b, s, hn::Mul(a, c)), d, first + i);
    hn::StoreU(hn::MulAdd(a, s, hn::Mul(b, c)), d, second + i);
  }
}

// sign: 1, or -1 for the way back.
void rotate_heads(std::size_t n_heads, std::size_t d_head, std::size_t half, const float* cosines,
                  const float* sines, float sign, float* row) {
  for (std::size_t h = 0; h < n_heads; ++h) {
    float *first = row + h * d_head, *second = first + half;
    std::size_t i = 0;
    for (; i + 16 <= half; i += 16) rotate_pairs<16>(cosines + i, sines + i, sign, first + i, second + i);
    for (; i + 4 <= half; i += 4) rotate_pairs<4>(cosines + i, sines + i, sign, first + i, second + i);
    for (; i < half; ++i) rotate_pairs<1>(cosines + i, sines + i, sign, first + i, second + i);
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
