// One position's attention over kept keys and values (KeptKeys).
//
// Keys lie in panels of sixteen positions, so that a score is computed for sixteen of them at once in whichever order its
// chain has; values in rows, so that a sum over positions is one chain per element. Both orders of a score are those of
// the other kernels: of gemm, and of row_dots.
#include <limits>

#include "compute/lanes-inl.h"
#include "hwy/contrib/math/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace deeptail::HWY_NAMESPACE {

// Scores of kHeads heads with kPanels panels [d_head][16]. out: [kHeads, 16 * kPanels].
template <std::size_t kHeads, std::size_t kPanels>
HWY_INLINE void chain_tile(std::size_t d_head, const float* HWY_RESTRICT panels, const float* HWY_RESTRICT q,
                           Rows out) {
  Lanes16 acc[kHeads][kPanels];
  for (auto& head : acc)
    for (auto& a : head) a = zero16();
  for (std::size_t i = 0; i < d_head; ++i) {
    Lanes16 key[kPanels];
    for (std::size_t p = 0; p < kPanels; ++p) key[p] = load16(panels + (p * d_head + i) * kPanel);
    for (std::size_t h = 0; h < kHeads; ++h) {
      const V x = hn::Set(D(), q[h * d_head + i]);
      for (std::size_t p = 0; p < kPanels; ++p)
        acc[h][p] = map16([&](V k, V a) { return hn::MulAdd(x, k, a); }, key[p], acc[h][p]);
    }
  }
  for (std::size_t h = 0; h < kHeads; ++h)
    for (std::size_t p = 0; p < kPanels; ++p) store16(acc[h][p], out.row(h) + p * kPanel);
}

template <std::size_t kHeads, std::size_t kPanels>
HWY_INLINE void chain_rest(std::size_t n, std::size_t d_head, const float* panels, const float* q, Rows out) {
  if constexpr (kPanels > 0) {
    if (n == kPanels) return chain_tile<kHeads, kPanels>(d_head, panels, q, out);
    chain_rest<kHeads, kPanels - 1>(n, d_head, panels, q, out);
  }
}

template <std::size_t kHeads>
void chain_dots(std::size_t n_panels, std::size_t d_head, const float* panels, const float* q, Rows out) {
  constexpr std::size_t kPanels = HWY_MAX(1, 8 / (kHeads * kVectors));
  std::size_t p = 0;
  for (; p + kPanels <= n_panels; p += kPanels)
    chain_tile<kHeads, kPanels>(d_head, panels + p * d_head * kPanel, q, {out.data + p * kPanel, out.stride});
  chain_rest<kHeads, kPanels - 1>(n_panels - p, d_head, panels + p * d_head * kPanel, q,
                                  {out.data + p * kPanel, out.stride});
}

// The sum of lanes lane, lane + kStride, lane + 2 kStride, .. of a dot product in sixteen lanes, added as fold16 does.
template <std::size_t kStride>
HWY_INLINE Lanes16 folded_lanes(std::size_t lane, std::size_t d_head, const float* HWY_RESTRICT panel,
                                const float* HWY_RESTRICT q) {
  if constexpr (kStride == kPanel) {
    Lanes16 acc = zero16();
    for (std::size_t i = lane; i < d_head; i += kPanel) {
      const V x = hn::Set(D(), q[i]);
      acc = map16([&](V k, V a) { return hn::MulAdd(k, x, a); }, load16(panel + i * kPanel), acc);
    }
    return acc;
  } else {
    return map16(AddOp(), folded_lanes<2 * kStride>(lane, d_head, panel, q),
                 folded_lanes<2 * kStride>(lane + kStride, d_head, panel, q));
  }
}

template <std::size_t kHeads>
void lane_dots(std::size_t n_panels, std::size_t d_head, const float* panels, const float* q, Rows out) {
  for (std::size_t p = 0; p < n_panels; ++p)
    for (std::size_t h = 0; h < kHeads; ++h)
      store16(folded_lanes<1>(0, d_head, panels + p * d_head * kPanel, q + h * d_head),
              out.row(h) + p * kPanel);
}

// Heads [first_head, first_head + kHeads) of the groups of key heads, and kUnits vectors of their values: unit u is vector
// u % n_vectors of key head u / n_vectors.
template <std::size_t kHeads, std::size_t kUnits>
HWY_INLINE void value_tile(const KeptShape& s, std::span<const KeptKeys> pieces, std::size_t first_head,
                           std::size_t first_unit, ConstRows p, float* z) {
  const D d;
  const std::size_t n_vectors = (s.d_head + kLanes - 1) / kLanes;
  V acc[kUnits][kHeads];
  std::size_t head[kUnits], column[kUnits], at = 0;
  for (std::size_t u = 0; u < kUnits; ++u) {
    head[u] = (first_unit + u) / n_vectors, column[u] = (first_unit + u) % n_vectors * kLanes;
    for (V& a : acc[u]) a = hn::Zero(d);
  }
  for (const KeptKeys& piece : pieces) {
    const float *value[kUnits], *weight[kUnits];
    for (std::size_t u = 0; u < kUnits; ++u) {
      value[u] = piece.values + head[u] * piece.head_stride + column[u];
      weight[u] = p.row(head[u] * s.kv_groups + first_head) + at;
    }
    for (std::size_t j = 0; j < piece.n; ++j)
      for (std::size_t u = 0; u < kUnits; ++u) {
        const V x = hn::LoadU(d, value[u] + j * s.d_head);
        for (std::size_t h = 0; h < kHeads; ++h)
          acc[u][h] = hn::MulAdd(hn::Set(d, weight[u][h * p.stride + j]), x, acc[u][h]);
      }
    at += piece.n;
  }
  for (std::size_t u = 0; u < kUnits; ++u) {
    const auto exist = hn::FirstN(d, s.d_head - column[u]);
    for (std::size_t h = 0; h < kHeads; ++h)
      hn::BlendedStore(acc[u][h], exist, d,
                       z + (head[u] * s.kv_groups + first_head + h) * s.d_head + column[u]);
  }
}

template <std::size_t kHeads, std::size_t kUnits>
HWY_INLINE void value_rest(std::size_t n, const KeptShape& s, std::span<const KeptKeys> pieces,
                           std::size_t first_head, std::size_t first_unit, ConstRows p, float* z) {
  if constexpr (kUnits > 0) {
    if (n == kUnits) return value_tile<kHeads, kUnits>(s, pieces, first_head, first_unit, p, z);
    value_rest<kHeads, kUnits - 1>(n, s, pieces, first_head, first_unit, p, z);
  }
}

template <std::size_t kHeads>
void value_sums(const KeptShape& s, std::span<const KeptKeys> pieces, std::size_t first_head, ConstRows p,
                float* z) {
  constexpr std::size_t kUnits = kHeads == 1 ? 8 : kHeads == 2 ? 4 : kHeads == 3 ? 4 : 2;
  const std::size_t n = s.n_heads / s.kv_groups * ((s.d_head + kLanes - 1) / kLanes);
  std::size_t unit = 0;
  for (; unit + kUnits <= n; unit += kUnits) value_tile<kHeads, kUnits>(s, pieces, first_head, unit, p, z);
  value_rest<kHeads, kUnits - 1>(n - unit, s, pieces, first_head, unit, p, z);
}

template <std::size_t kHeads>
void score_heads(const KeptShape& s, std::span<const KeptKeys> pieces, std::size_t first_head, const float* q,
                 Rows p) {
  for (std::size_t h = first_head; h < s.n_heads; h += s.kv_groups) {
    std::size_t at = 0;
    for (const KeptKeys& piece : pieces) {
      const float* keys = piece.keys + h / s.kv_groups * piece.head_stride;
      const std::size_t n_panels = (piece.n + kPanel - 1) / kPanel;
      const Rows out{p.row(h) + at, p.stride};
      if (s.order == KeptShape::Order::kChain)
        chain_dots<kHeads>(n_panels, s.d_head, keys, q + h * s.d_head, out);
      else
        lane_dots<kHeads>(n_panels, s.d_head, keys, q + h * s.d_head, out);
      at += piece.n;
    }
  }
}

// softmax_row of kRows rows at once, whose chains hide each other's latency. Columns from n up to a multiple of sixteen
// become zero. (They are masked in vectors: a vector load after stores of single floats would wait for them.)
template <std::size_t kRows>
HWY_INLINE void softmax_heads(std::size_t n, float scale, Rows p) {
  const D d;
  const V never = hn::Set(d, -std::numeric_limits<float>::infinity()), vscale = hn::Set(d, scale);
  const std::size_t end = round_up(n, kPanel), last = end - kPanel;
  Lanes16 top[kRows], sum[kRows];
  for (std::size_t r = 0; r < kRows; ++r) {
    Lanes16 edge = load16(p.row(r) + last);
    for (std::size_t v = 0; v < kVectors; ++v) {
      const std::size_t at = last + v * kLanes;
      edge.v[v] = hn::IfThenElse(hn::FirstN(d, n > at ? n - at : 0), edge.v[v], never);
    }
    store16(edge, p.row(r) + last);
    top[r] = edge, sum[r] = zero16();
  }
  for (std::size_t i = 0; i < last; i += kPanel)
    for (std::size_t r = 0; r < kRows; ++r) top[r] = map16(MaxOp(), top[r], load16(p.row(r) + i));
  V best[kRows];
  for (std::size_t r = 0; r < kRows; ++r) best[r] = hn::Set(d, fold16(top[r], MaxOp()));
  for (std::size_t i = 0; i < end; i += kPanel)
    for (std::size_t r = 0; r < kRows; ++r) {
      const auto weight = [&](V v) { return hn::Exp(d, hn::Mul(vscale, hn::Sub(v, best[r]))); };
      const Lanes16 e = map16(weight, load16(p.row(r) + i));
      store16(e, p.row(r) + i);
      sum[r] = map16(AddOp(), sum[r], e);
    }
  V inverse[kRows];
  for (std::size_t r = 0; r < kRows; ++r) inverse[r] = hn::Set(d, 1.0f / fold16(sum[r], AddOp()));
  for (std::size_t i = 0; i < end; i += kPanel)
    for (std::size_t r = 0; r < kRows; ++r)
      store16(map16([&](V v) { return hn::Mul(v, inverse[r]); }, load16(p.row(r) + i)), p.row(r) + i);
}

// Calls body.operator()<k>(first) for parts [first, first + k) of n, k at most four.
template <class Body>
HWY_INLINE void in_fours(std::size_t n, Body body) {
  std::size_t i = 0;
  for (; i + 4 <= n; i += 4) body.template operator()<4>(i);
  if (n - i == 3) body.template operator()<3>(i);
  if (n - i == 2) body.template operator()<2>(i);
  if (n - i == 1) body.template operator()<1>(i);
}

void attend_kept_all(const KeptShape& s, std::span<const KeptKeys> pieces, const float* q, float* scratch,
                     float* z) {
  std::size_t n = 0;
  for (const KeptKeys& piece : pieces) n += piece.n;
  const Rows p{scratch, round_up(n, kPanel) + kPanel};
  in_fours(s.kv_groups, [&]<std::size_t kHeads>(std::size_t h) { score_heads<kHeads>(s, pieces, h, q, p); });
  in_fours(s.n_heads, [&]<std::size_t kRows>(std::size_t h) { softmax_heads<kRows>(n, s.scale, p.from(h)); });
  in_fours(s.kv_groups, [&]<std::size_t kHeads>(std::size_t h) { value_sums<kHeads>(s, pieces, h, p, z); });
}

}  // namespace deeptail::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace deeptail {

HWY_EXPORT(attend_kept_all);

void attend_kept(const KeptShape& shape, std::span<const KeptKeys> pieces, const float* q, float* scratch,
                 float* z) {
  HWY_DYNAMIC_DISPATCH(attend_kept_all)(shape, pieces, q, scratch, z);
}

}  // namespace deeptail
#endif
