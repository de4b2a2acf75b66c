// One query's attention over rows that lie anywhere in memory: dot products, and weighted sums.
#include "compute/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace deeptail::HWY_NAMESPACE {

HWY_INLINE V mul_add(V a, V b, V c) { return hn::MulAdd(a, b, c); }

// out[h, j] for kHeads heads at once: a row is loaded once for all of them.
template <std::size_t kHeads>
void dots(std::size_t n, const float* const* rows, std::size_t d, ConstRows u, Rows out) {
  for (std::size_t j = 0; j < n; ++j) {
    Lanes16 acc[kHeads];
    for (auto& a : acc) a = zero16();
    for_each16(d, [&](std::size_t i, std::size_t count) {
      const Lanes16 x = load16(rows[j] + i, count);
      for (std::size_t h = 0; h < kHeads; ++h)
        acc[h] = map16(mul_add, x, load16(u.row(h) + i, count), acc[h]);
    });
    for (std::size_t h = 0; h < kHeads; ++h) out.row(h)[j] = fold16(acc[h], AddOp());
  }
}

// out[h] for kHeads heads at once; each element adds over j in order.
template <std::size_t kHeads>
void sums(std::size_t n, const float* const* rows, std::size_t d, ConstRows p, Rows out) {
  for_each16(d, [&](std::size_t i, std::size_t count) {
    Lanes16 acc[kHeads];
    for (auto& a : acc) a = zero16();
    for (std::size_t j = 0; j < n; ++j) {
      const Lanes16 x = load16(rows[j] + i, count);
      for (std::size_t h = 0; h < kHeads; ++h) {
        const V weight = hn::Set(D(), p.row(h)[j]);
        acc[h] = map16([&](V a, V v) { return hn::MulAdd(weight, v, a); }, acc[h], x);
      }
    }
    for (std::size_t h = 0; h < kHeads; ++h) store16(acc[h], out.row(h) + i, count);
  });
}

void row_dots_all(std::size_t n, const float* const* rows, std::size_t d, std::size_t n_heads, ConstRows u,
                  Rows out) {
  std::size_t h = 0;
  for (; h + 4 <= n_heads; h += 4) dots<4>(n, rows, d, u.from(h), out.from(h));
  for (; h < n_heads; ++h) dots<1>(n, rows, d, u.from(h), out.from(h));
}

void row_sums_all(std::size_t n, const float* const* rows, std::size_t d, std::size_t n_heads, ConstRows p,
                  Rows out) {
  std::size_t h = 0;
  for (; h + 4 <= n_heads; h += 4) sums<4>(n, rows, d, p.from(h), out.from(h));
  for (; h < n_heads; ++h) sums<1>(n, rows, d, p.from(h), out.from(h));
}

}  // namespace deeptail::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace deeptail {

HWY_EXPORT(row_dots_all);
HWY_EXPORT(row_sums_all);

void row_dots(std::size_t n, const float* const* rows, std::size_t d, std::size_t n_heads, ConstRows u,
              Rows out) {
  HWY_DYNAMIC_DISPATCH(row_dots_all)(n, rows, d, n_heads, u, out);
}

void row_sums(std::size_t n, const float* const* rows, std::size_t d, std::size_t n_heads, ConstRows p,
              Rows out) {
  HWY_DYNAMIC_DISPATCH(row_sums_all)(n, rows, d, n_heads, p, out);
}

}  // namespace deeptail
#endif
