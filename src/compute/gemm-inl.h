// Matrix products with packed weights.
//
// One output element is fma(a[0], w[0], 0), fma(a[1], w[1], .), ... in order, then + bias: the chain of one
// accumulator of the register tile below. No split of k, so tiles of any shape, and any order of rows and
// columns, give the same bits. k is at most a few thousand here, so a panel (k x 16 floats) streams from L2
// and needs no blocking in k.
#include "compute/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace deeptail::HWY_NAMESPACE {

// Rows of the register tile: 12 accumulators hide the latency of the multiply-add on every target.
constexpr std::size_t kTileRows = kVectors == 1 ? 12 : kVectors == 2 ? 6 : 3;

// What happens to a finished tile row.
struct Finish {
  const float* bias;  // [16] or null
  GemmMode mode;
  std::size_t width;  // columns that exist, <= 16
};

HWY_INLINE void store_row(const V (&acc)[kVectors], const Finish& finish, float* c) {
  const D d;
  HWY_ALIGN float edge[kPanel];
  float* out = c;
  if (HWY_UNLIKELY(finish.width < kPanel)) {
    out = edge;
    if (finish.mode == GemmMode::kAdd)
      for (std::size_t j = 0; j < kPanel; ++j) edge[j] = j < finish.width ? c[j] : 0.0f;
  }
  for (std::size_t v = 0; v < kVectors; ++v) {
    V value = acc[v];
    if (finish.bias != nullptr) value = hn::Add(value, hn::Load(d, finish.bias + v * kLanes));
    if (finish.mode == GemmMode::kAdd) value = hn::Add(hn::LoadU(d, out + v * kLanes), value);
    hn::StoreU(value, d, out + v * kLanes);
  }
  if (HWY_UNLIKELY(finish.width < kPanel))
    for (std::size_t j = 0; j < finish.width; ++j) c[j] = edge[j];
}

// The next panel comes into L2 while this one is used: a line of it per `steps` steps in k, from `next` on. A fetch is a hint, and
// harms nowhere, whatever the address.
struct Ahead {
  const float* next;
  std::size_t steps;
};

// c: [kRows, 16] from a: [kRows, k] and one panel [k][16].
template <std::size_t kRows>
HWY_INLINE void tile(ConstRows a, std::size_t k, const float* HWY_RESTRICT panel, const Finish& finish,
                     Rows c, Ahead ahead) {
  const D d;
  V acc[kRows][kVectors];
  for (auto& row : acc)
    for (V& v : row) v = hn::Zero(d);
  const float* HWY_RESTRICT a_row[kRows];
  for (std::size_t i = 0; i < kRows; ++i) a_row[i] = a.row(i);
  for (std::size_t first = 0; first < k; first += ahead.steps) {
    __builtin_prefetch(ahead.next, 0, 2);
    ahead.next += kPanel;
    const std::size_t end = std::min(first + ahead.steps, k);
    for (std::size_t kk = first; kk < end; ++kk) {
      V w[kVectors];
      for (std::size_t v = 0; v < kVectors; ++v) w[v] = hn::Load(d, panel + kk * kPanel + v * kLanes);
      for (std::size_t i = 0; i < kRows; ++i) {
        const V x = hn::Set(d, a_row[i][kk]);
        for (std::size_t v = 0; v < kVectors; ++v) acc[i][v] = hn::MulAdd(x, w[v], acc[i][v]);
      }
    }
  }
  for (std::size_t i = 0; i < kRows; ++i) store_row(acc[i], finish, c.row(i));
}

// The last m rows, fewer than a full tile.
template <std::size_t kRows>
HWY_INLINE void tile_rest(std::size_t m, ConstRows a, std::size_t k, const float* panel, const Finish& finish,
                          Rows c, Ahead ahead) {
  if constexpr (kRows > 0) {
    if (m == kRows) return tile<kRows>(a, k, panel, finish, c, ahead);
    tile_rest<kRows - 1>(m, a, k, panel, finish, c, ahead);
  }
}

// Fetching ahead pays where panels come from L3 or from memory, and costs where rows are few or panels small.
HWY_INLINE Ahead fetch_ahead(std::size_t m, std::size_t k, const float* next) {
  constexpr std::size_t kLongPanel = 256, kFewestSteps = 4;
  if (k < kLongPanel || m < kTileRows) return {next, k};
  return {next, std::max(m / kTileRows, kFewestSteps)};
}

void panel_product(std::size_t m, ConstRows a, std::size_t k, const float* panel, const float* next,
                   const Finish& finish, Rows c) {
  Ahead ahead = fetch_ahead(m, k, next);
  const std::size_t lines = (k + ahead.steps - 1) / ahead.steps;
  std::size_t i = 0;
  for (; i + kTileRows <= m; i += kTileRows) {
    tile<kTileRows>(a.from(i), k, panel, finish, c.from(i), ahead);
    ahead.next += lines * kPanel;
  }
  tile_rest<kTileRows - 1>(m - i, a.from(i), k, panel, finish, c.from(i), ahead);
}

// Rows in chunks that stay in L2 while every panel passes over them: large ones, since the weights of a large model come
// from further away, once per chunk.
void product(std::size_t m, ConstRows a, const PackedMatrix& w, std::size_t first, std::size_t count,
             GemmMode mode, Rows c) {
  const std::size_t chunk = round_up(std::max<std::size_t>(1, (384 << 10) / (sizeof(float) * w.k())), 12);
  for (std::size_t i = 0; i < m; i += chunk) {
    const std::size_t rows = std::min(chunk, m - i);
    for (std::size_t p = first; p < first + count; ++p) {
      const Finish finish{w.bias() + p * kPanel, mode, std::min(kPanel, w.n() - p * kPanel)};
      const Rows out{c.row(i) + (p - first) * kPanel, c.stride};
      panel_product(rows, a.from(i), w.k(), w.panel(p), w.panel(p + 1), finish, out);
    }
  }
}

void bare_product(std::size_t m, ConstRows a, std::size_t k, const float* panel, std::size_t n, Rows c) {
  panel_product(m, a, k, panel, panel, Finish{nullptr, GemmMode::kStore, n}, c);
}

}  // namespace deeptail::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace deeptail {

HWY_EXPORT(product);
HWY_EXPORT(bare_product);

void gemm(std::size_t m, ConstRows a, const PackedMatrix& w, Rows c, GemmMode mode) {
  HWY_DYNAMIC_DISPATCH(product)(m, a, w, 0, w.n_panels(), mode, c);
}

void gemm_panels(std::size_t m, ConstRows a, const PackedMatrix& w, std::size_t first, std::size_t count,
                 Rows c) {
  HWY_DYNAMIC_DISPATCH(product)(m, a, w, first, count, GemmMode::kStore, c);
}

void gemm_bare_panel(std::size_t m, ConstRows a, std::size_t k, const float* panel, std::size_t n, Rows c) {
  HWY_DYNAMIC_DISPATCH(bare_product)(m, a, k, panel, n, c);
}

const char* simd_name() { return hwy::TargetName(hwy::SupportedTargets() & -hwy::SupportedTargets()); }

}  // namespace deeptail
#endif
