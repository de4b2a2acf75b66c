// Keyed standard normal numbers: Philox words, then Box and Muller in fp32.
#include "compute/lanes-inl.h"
#include "hwy/contrib/math/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace deeptail::HWY_NAMESPACE {

// radius, angle: [n] words in [0, 2^31). cosines, sines: [n] normals each. n is a multiple of 16.
void box_muller(std::size_t n, const std::int32_t* radius, const std::int32_t* angle, float* cosines,
                float* sines) {
  const D d;
  const hn::RebindToSigned<D> di;
  const V scale = hn::Set(d, 0x1p-31f), half = hn::Set(d, 0x1p-32f),
          turn = hn::Set(d, 0x1p-31f * 6.283185307f);
  for (std::size_t i = 0; i < n; i += kLanes) {
    // In (0, 1]: the centre of the word's interval, so never 0.
    const V u = hn::MulAdd(hn::ConvertTo(d, hn::LoadU(di, radius + i)), scale, half);
    const V r = hn::Sqrt(hn::Mul(hn::Set(d, -2.0f), hn::Log(d, hn::Min(u, hn::Set(d, 1.0f)))));
    const V t = hn::Mul(hn::ConvertTo(d, hn::LoadU(di, angle + i)), turn);
    hn::StoreU(hn::Mul(r, hn::Cos(d, t)), d, cosines + i);
    hn::StoreU(hn::Mul(r, hn::Sin(d, t)), d, sines + i);
  }
}

double log1p_squares(std::size_t n, const float* x, float factor) {
  const D d;
  const V one = hn::Set(d, 1.0f), c = hn::Set(d, factor);
  double sums[kPanel] = {};
  for (std::size_t i = 0; i < n; i += kPanel) {
    const std::size_t count = n - i < kPanel ? n - i : kPanel;
    HWY_ALIGN float logs[kPanel];
    store16(map16([&](V v) { return hn::Log(d, hn::MulAdd(hn::Mul(v, v), c, one)); }, load16(x + i, count)),
            logs);
    for (std::size_t lane = 0; lane < kPanel; ++lane) sums[lane] += logs[lane];
  }
  double sum = 0.0;
  for (const double s : sums) sum += s;
  return sum;
}

}  // namespace deeptail::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <algorithm>

#include "compute/normals.h"

namespace deeptail {

HWY_EXPORT(box_muller);
HWY_EXPORT(log1p_squares);

void fill_normals(RngKey key, std::uint64_t index, std::size_t n, float* out) {
  constexpr std::size_t kBlocks = 32;  // Philox evaluations at once: two pairs of normals each
  std::int32_t radius[2 * kBlocks], angle[2 * kBlocks];
  float cosines[2 * kBlocks], sines[2 * kBlocks];
  for (std::size_t first = 0; first < n; first += 4 * kBlocks) {
    const std::size_t pairs = std::min<std::size_t>(2 * kBlocks, (n - first + 1) / 2);
    const std::size_t padded = round_up(pairs, kPanel);
    for (std::size_t i = 0; i < padded; i += 2) {
      const auto words = uniform64_pair(key, index, static_cast<std::uint32_t>((first / 2 + i) / 2));
      for (std::size_t j = 0; j < 2; ++j) {
        radius[i + j] = static_cast<std::int32_t>(static_cast<std::uint32_t>(words[j]) >> 1);
        angle[i + j] = static_cast<std::int32_t>(words[j] >> 33);
      }
    }
    HWY_DYNAMIC_DISPATCH(box_muller)(padded, radius, angle, cosines, sines);
    for (std::size_t i = 0; i < pairs; ++i) {
      out[first + 2 * i] = cosines[i];
      if (first + 2 * i + 1 < n) out[first + 2 * i + 1] = sines[i];
    }
  }
}

double sum_log1p_squares(std::size_t n, const float* x, float factor) {
  return HWY_DYNAMIC_DISPATCH(log1p_squares)(n, x, factor);
}

}  // namespace deeptail
#endif  // HWY_ONCE
