// The screening kernel against its scalar statement: the same bits, at thresholds that the bounds meet
// exactly.
#include <hwy/targets.h>

#include "compute/reference.h"
#include "unit/compute/kernel_checks.h"

namespace deeptail {
namespace {

struct ScreenCase {
  std::size_t m, k, n;
};

class Screening : public ::testing::TestWithParam<ScreenCase> {};

ScreenColumns random_columns(std::size_t k, std::size_t n) {
  std::mt19937 engine(5);
  std::uniform_int_distribution<int> integer(-kScreenColumnMax, kScreenColumnMax);
  std::uniform_real_distribution<float> positive(0.5f, 1.5f);
  ScreenColumns w(k, n);
  for (std::size_t j = 0; j < n; ++j) {
    // The first columns are the largest either way: where the 16-bit sums would overflow.
    for (std::size_t i = 0; i < k; ++i)
      w.set(i, j, j == 0 ? kScreenColumnMax : j == 1 ? -kScreenColumnMax : integer(engine));
    w.step[j] = positive(engine), w.slope[j] = positive(engine), w.offset[j] = positive(engine);
  }
  return w;
}

TEST_P(Screening, EqualsTheScalarStatement) {
  const auto [m, k, n] = GetParam();
  const ScreenColumns w = random_columns(k, n);
  std::mt19937 engine(6);
  std::uniform_int_distribution<int> integer(-kScreenRowMax, kScreenRowMax);
  AlignedVector<std::int8_t> rows(m * w.k());
  for (auto& v : rows) v = static_cast<std::int8_t>(integer(engine));
  std::fill_n(rows.begin(), w.k(), static_cast<std::int8_t>(kScreenRowMax));
  std::fill_n(rows.end() - static_cast<std::ptrdiff_t>(w.k()), w.k(),
              static_cast<std::int8_t>(-kScreenRowMax));
  std::vector<ScreenRow> bounds(m);
  for (std::size_t i = 0; i < m; ++i) {
    bounds[i] = {0.001f, 0.5f, 0.0f};
    bounds[i].threshold = reference::screen_bound(rows.data() + i * w.k(), bounds[i], w, i % n);
  }
  const std::size_t panels = w.n_panels();
  std::vector<std::uint16_t> bits(m * panels, 0xabcd);
  screen_panels(m, rows.data(), bounds.data(), w, 0, panels, bits.data());
  std::size_t set = 0;
  for (std::size_t i = 0; i < m; ++i)
    for (std::size_t j = 0; j < panels * kPanel; ++j) {
      const bool open = (bits[i * panels + j / kPanel] >> (j % kPanel) & 1) != 0;
      const bool expected =
          j < n && reference::screen_bound(rows.data() + i * w.k(), bounds[i], w, j) >= bounds[i].threshold;
      // Without FMA the kernel rounds twice, and a column may fall on the other side of its own threshold.
      if (j != i % n || has_fma()) {
        EXPECT_EQ(open, expected) << i << " " << j;
      }
      set += open;
    }
  EXPECT_GT(set, 0u);
  std::vector<std::uint16_t> last(m);
  screen_panels(m, rows.data(), bounds.data(), w, panels - 1, 1, last.data());
  for (std::size_t i = 0; i < m; ++i) EXPECT_EQ(last[i], bits[i * panels + panels - 1]);
}

INSTANTIATE_TEST_SUITE_P(Shapes, Screening,
                         ::testing::Values(ScreenCase{1, 8, 1}, ScreenCase{6, 16, 48}, ScreenCase{13, 33, 31},
                                           ScreenCase{103, 16, 40}, ScreenCase{9, 128, 100},
                                           ScreenCase{7, 512, 33}));

TEST(ScreenPanels, EveryTargetAgrees) {
  const std::size_t m = 13;
  const ScreenColumns w = random_columns(40, 50);
  AlignedVector<std::int8_t> rows(m * w.k());
  std::mt19937 engine(7);
  for (auto& v : rows) v = static_cast<std::int8_t>(static_cast<int>(engine() % 129) - 64);
  const std::vector<ScreenRow> bounds(m, {0.001f, 0.5f, 3.0f});  // no bound comes near 3 within rounding
  std::vector<std::uint16_t> expected(m * w.n_panels()), found(expected.size());
  screen_panels(m, rows.data(), bounds.data(), w, 0, w.n_panels(), expected.data());
  for (std::int64_t targets = hwy::SupportedTargets(); targets != 0; targets &= targets - 1) {
    hwy::SetSupportedTargetsForTest(targets & -targets);
    screen_panels(m, rows.data(), bounds.data(), w, 0, w.n_panels(), found.data());
    EXPECT_EQ(found, expected) << simd_name();
  }
  hwy::SetSupportedTargetsForTest(0);
}

TEST(ScreenPanels, NaNIsNeverRuledOut) {
  ScreenColumns w = random_columns(8, 20);
  w.slope[3] = NAN;
  const AlignedVector<std::int8_t> rows(8, 1);
  std::uint16_t bits[2];
  const ScreenRow high{1.0f, 1.0f, 1e30f}, broken{NAN, 1.0f, 1e30f}, no_threshold{1.0f, 1.0f, NAN};
  screen_panels(1, rows.data(), &high, w, 0, 2, bits);
  EXPECT_EQ(bits[0], 1u << 3);
  EXPECT_EQ(bits[1], 0u);
  for (const ScreenRow& row : {broken, no_threshold}) {
    screen_panels(1, rows.data(), &row, w, 0, 2, bits);
    EXPECT_EQ(bits[0], 0xffff);
    EXPECT_EQ(bits[1] & 0xf, 0xf);
  }
}

}  // namespace
}  // namespace deeptail
