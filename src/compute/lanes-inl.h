// Sixteen fixed lanes on any vector width: the unit of every reduction. Included once per instruction set.
#if defined(DEEPTAIL_LANES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef DEEPTAIL_LANES_INL_H_
#undef DEEPTAIL_LANES_INL_H_
#else
#define DEEPTAIL_LANES_INL_H_
#endif

#include <cstddef>

#include "deeptail/compute.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace deeptail::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using D = hn::CappedTag<float, kPanel>;
using V = hn::Vec<D>;
constexpr std::size_t kLanes = hn::MaxLanes(D());
constexpr std::size_t kVectors = kPanel / kLanes;

struct Lanes16 {
  V v[kVectors];
};

HWY_INLINE Lanes16 zero16() {
  Lanes16 out;
  for (V& v : out.v) v = hn::Zero(D());
  return out;
}

HWY_INLINE Lanes16 load16(const float* p) {
  Lanes16 out;
  for (std::size_t i = 0; i < kVectors; ++i) out.v[i] = hn::LoadU(D(), p + i * kLanes);
  return out;
}

// Lanes at and beyond `count` are zero and their memory is not read.
HWY_INLINE Lanes16 load16_first(const float* p, std::size_t count) {
  HWY_ALIGN float padded[kPanel] = {};
  for (std::size_t i = 0; i < count; ++i) padded[i] = p[i];
  return load16(padded);
}

HWY_INLINE void store16(const Lanes16& x, float* p) {
  for (std::size_t i = 0; i < kVectors; ++i) hn::StoreU(x.v[i], D(), p + i * kLanes);
}

HWY_INLINE void store16_first(const Lanes16& x, float* p, std::size_t count) {
  HWY_ALIGN float padded[kPanel];
  store16(x, padded);
  for (std::size_t i = 0; i < count; ++i) p[i] = padded[i];
}

// Applies op to the vectors of its arguments, one by one.
template <class Op, class... L>
HWY_INLINE Lanes16 map16(Op op, const L&... x) {
  Lanes16 out;
  for (std::size_t i = 0; i < kVectors; ++i) out.v[i] = op(x.v[i]...);
  return out;
}

// Folds the lanes of one vector: lane i with lane i + half, and so on down to one.
template <class Tag, class Vector, class Op>
HWY_INLINE float fold_vector([[maybe_unused]] Tag d, Vector v, [[maybe_unused]] Op op) {
#if HWY_TARGET == HWY_SCALAR
  return hn::GetLane(v);
#else
  if constexpr (hn::MaxLanes(d) > 4) {
    const hn::Half<Tag> half;
    return fold_vector(half, op(hn::LowerHalf(half, v), hn::UpperHalf(half, v)), op);
  } else {
    const Vector two = op(v, hn::Shuffle1032(v));
    return hn::GetLane(op(two, hn::Shuffle2301(two)));
  }
#endif
}

// Folds sixteen lanes to one: lane i with lane i + 8, then + 4, + 2, + 1, on every target.
template <class Op>
HWY_INLINE float fold16(Lanes16 x, Op op) {
  for (std::size_t half = kVectors / 2; half > 0; half /= 2)
    for (std::size_t i = 0; i < half; ++i) x.v[i] = op(x.v[i], x.v[i + half]);
  return fold_vector(D(), x.v[0], op);
}

struct AddOp {
  template <class T>
  HWY_INLINE T operator()(T a, T b) const {
    return hn::Add(a, b);
  }
};
struct MaxOp {
  template <class T>
  HWY_INLINE T operator()(T a, T b) const {
    return hn::Max(a, b);
  }
};

// Calls body(offset, count) for each stretch of at most sixteen of n elements.
template <class Body>
HWY_INLINE void for_each16(std::size_t n, Body body) {
  std::size_t i = 0;
  for (; i + kPanel <= n; i += kPanel) body(i, kPanel);
  if (i < n) body(i, n - i);
}

HWY_INLINE Lanes16 load16(const float* p, std::size_t count) {
  return HWY_LIKELY(count == kPanel) ? load16(p) : load16_first(p, count);
}
HWY_INLINE void store16(const Lanes16& x, float* p, std::size_t count) {
  if (HWY_LIKELY(count == kPanel))
    store16(x, p);
  else
    store16_first(x, p, count);
}

}  // namespace deeptail::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
