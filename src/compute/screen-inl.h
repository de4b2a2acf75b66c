// Upper bounds of many logits at once, in 8-bit integers. Which columns are within reach comes out as bits.
//
// x86 multiplies unsigned by signed bytes and adds neighbours into 16 bits. Two such sums fit: 4 products of
// at most 127 * 64. Columns are stored with 64 added; what that adds to a dot product depends on the row
// alone.
#include "compute/lanes-inl.h"
#include "compute/reference.h"

HWY_BEFORE_NAMESPACE();
namespace deeptail::HWY_NAMESPACE {

#if HWY_ARCH_X86 && HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128 && HWY_TARGET != HWY_SSE2

using D32 = hn::RebindToSigned<D>;
using D16 = hn::Repartition<std::int16_t, D>;
using D8 = hn::Repartition<std::uint8_t, D>;
constexpr std::size_t kScreenTileRows = kVectors == 1 ? 8 : kVectors == 2 ? 4 : 2;

// Products of unsigned and signed bytes, neighbours added. This Highway has no name for it.
HWY_INLINE hn::Vec<D16> multiply_bytes(hn::Vec<D8> columns, hn::Vec<D8> rows) {
#if HWY_TARGET <= HWY_AVX3
  return hn::Vec<D16>{_mm512_maddubs_epi16(columns.raw, rows.raw)};
#elif HWY_TARGET <= HWY_AVX2
  return hn::Vec<D16>{_mm256_maddubs_epi16(columns.raw, rows.raw)};
#else
  return hn::Vec<D16>{_mm_maddubs_epi16(columns.raw, rows.raw)};
#endif
}

// Bits of one row in one panel.
HWY_INLINE std::uint16_t open_bits(const hn::Vec<D32> (&dot)[kVectors], const ScreenRow& bound,
                                   const ScreenColumns& w, std::size_t column) {
  const D d;
  unsigned open = 0;
  for (std::size_t v = 0; v < kVectors; ++v) {
    const std::size_t at = column + v * kLanes;
    const auto base = hn::MulAdd(hn::Load(d, w.slope.data() + at), hn::Set(d, bound.reach),
                                 hn::Load(d, w.offset.data() + at));
    const auto product = hn::Mul(hn::ConvertTo(d, dot[v]), hn::Load(d, w.step.data() + at));
    const auto value = hn::MulAdd(product, hn::Set(d, bound.scale), base);
    std::uint8_t bytes[8] = {};
    hn::StoreMaskBits(d, hn::Not(hn::Lt(value, hn::Set(d, bound.threshold))), bytes);
    open |= (bytes[0] | static_cast<unsigned>(bytes[1]) << 8) << (v * kLanes);
  }
  return static_cast<std::uint16_t>(open);
}

// shift: [kRows], what the stored 64 adds to each row's dot products.
template <std::size_t kRows>
HWY_INLINE void screen_tile(const std::int8_t* HWY_RESTRICT rows, const std::int32_t* shift,
                            const ScreenRow* bounds, const ScreenColumns& w, std::size_t p,
                            std::uint16_t* bits, std::size_t bits_stride) {
  const D32 d32;
  const D16 d16;
  const D8 d8;
  const std::size_t k_end = w.k();
  const std::uint8_t* HWY_RESTRICT panel = w.panel(p);
  const auto ones = hn::Set(d16, std::int16_t{1});
  hn::Vec<D32> sum[kRows][kVectors];
  for (std::size_t i = 0; i < kRows; ++i)
    for (std::size_t v = 0; v < kVectors; ++v) sum[i][v] = hn::Set(d32, -shift[i]);
  for (std::size_t k = 0; k < k_end; k += kScreenUnit) {
    hn::Vec<D8> low[kVectors], high[kVectors];
    for (std::size_t v = 0; v < kVectors; ++v) {
      low[v] = hn::Load(d8, panel + k * kPanel + v * 4 * kLanes);
      high[v] = hn::Load(d8, panel + (k + 4) * kPanel + v * 4 * kLanes);
    }
    for (std::size_t i = 0; i < kRows; ++i) {
      std::int32_t first, second;  // rows[i][k .. k + 4) and [k + 4 .. k + 8), in every lane
      __builtin_memcpy(&first, rows + i * k_end + k, 4);
      __builtin_memcpy(&second, rows + i * k_end + k + 4, 4);
      const auto x_low = hn::BitCast(d8, hn::Set(d32, first)), x_high = hn::BitCast(d8, hn::Set(d32, second));
      for (std::size_t v = 0; v < kVectors; ++v) {
        const auto pairs = hn::Add(multiply_bytes(low[v], x_low), multiply_bytes(high[v], x_high));
        hn::Vec<D32> none = hn::Zero(d32);  // unused on x86, where neighbours are added
        sum[i][v] = hn::ReorderWidenMulAccumulate(d32, pairs, ones, sum[i][v], none);
      }
    }
  }
  for (std::size_t i = 0; i < kRows; ++i) bits[i * bits_stride] = open_bits(sum[i], bounds[i], w, p * kPanel);
}

// The last m rows, fewer than a full tile.
template <std::size_t kRows>
HWY_INLINE void screen_rest(std::size_t m, const std::int8_t* rows, const std::int32_t* shift,
                            const ScreenRow* bounds, const ScreenColumns& w, std::size_t p,
                            std::uint16_t* bits, std::size_t stride) {
  if constexpr (kRows > 0) {
    if (m == kRows) return screen_tile<kRows>(rows, shift, bounds, w, p, bits, stride);
    screen_rest<kRows - 1>(m, rows, shift, bounds, w, p, bits, stride);
  }
}

void screen(std::size_t m, const std::int8_t* rows, const ScreenRow* bounds, const ScreenColumns& w,
            std::size_t first, std::size_t count, std::uint16_t* bits) {
  constexpr std::size_t kChunk = 96;
  std::int32_t shift[kChunk];
  for (std::size_t start = 0; start < m; start += kChunk) {
    const std::size_t end = std::min(m, start + kChunk);
    for (std::size_t i = start; i < end; ++i) {
      shift[i - start] = 0;
      for (std::size_t k = 0; k < w.k(); ++k) shift[i - start] += ScreenColumns::kZero * rows[i * w.k() + k];
    }
    for (std::size_t p = 0; p < count; ++p) {
      std::size_t i = start;
      for (; i + kScreenTileRows <= end; i += kScreenTileRows)
        screen_tile<kScreenTileRows>(rows + i * w.k(), shift + (i - start), bounds + i, w, first + p,
                                     bits + i * count + p, count);
      screen_rest<kScreenTileRows - 1>(end - i, rows + i * w.k(), shift + (i - start), bounds + i, w,
                                       first + p, bits + i * count + p, count);
    }
  }
}

#else

void screen(std::size_t m, const std::int8_t* rows, const ScreenRow* bounds, const ScreenColumns& w,
            std::size_t first, std::size_t count, std::uint16_t* bits) {
  for (std::size_t i = 0; i < m; ++i)
    for (std::size_t p = 0; p < count; ++p) {
      unsigned open = 0;
      for (std::size_t c = 0; c < kPanel; ++c)
        if (!(reference::screen_bound(rows + i * w.k(), bounds[i], w, (first + p) * kPanel + c) <
              bounds[i].threshold))
          open |= 1u << c;
      bits[i * count + p] = static_cast<std::uint16_t>(open);
    }
}

#endif

}  // namespace deeptail::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace deeptail {

ScreenColumns::ScreenColumns(std::size_t k, std::size_t n)
    : step(round_up(n, kPanel), 0.0f),
      slope(round_up(n, kPanel), 0.0f),
      offset(round_up(n, kPanel), -INFINITY),
      k_(round_up(k, kScreenUnit)),
      n_(n),
      panels_(round_up(n, kPanel) * k_, std::uint8_t{kZero}) {}

HWY_EXPORT(screen);

void screen_panels(std::size_t m, const std::int8_t* rows, const ScreenRow* bounds,
                   const ScreenColumns& columns, std::size_t first, std::size_t count, std::uint16_t* bits) {
  HWY_DYNAMIC_DISPATCH(screen)(m, rows, bounds, columns, first, count, bits);
}

}  // namespace deeptail
#endif
