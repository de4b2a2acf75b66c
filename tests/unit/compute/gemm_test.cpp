#include <gtest/gtest.h>

#include <hwy/targets.h>

#include "compute/reference.h"
#include "unit/compute/kernel_checks.h"

namespace deeptail {
namespace {

struct Case {
  std::size_t m, k, n;
};

class Gemm : public ::testing::TestWithParam<Case> {};

TEST_P(Gemm, EqualsTheChainToTheBit) {
  const auto [m, k, n] = GetParam();
  const std::size_t a_stride = k + 3, c_stride = n + 5;
  const auto a = random_values(m * a_stride, 1), bias = random_values(n, 3),
             before = random_values(m * c_stride, 4);
  const auto w = random_values(k * n, 2);
  const PackedMatrix packed({w.data(), w.size()}, k, n, {bias.data(), bias.size()});
  for (const GemmMode mode : {GemmMode::kStore, GemmMode::kAdd}) {
    AlignedVector<float> c = before;
    gemm(m, {a.data(), a_stride}, packed, {c.data(), c_stride}, mode);
    for (std::size_t i = 0; i < m; ++i) {
      for (std::size_t j = 0; j < n; ++j) {
        const float product = reference::gemm_element(a.data() + i * a_stride, packed, j);
        expect_same(c[i * c_stride + j],
                    mode == GemmMode::kAdd ? before[i * c_stride + j] + product : product);
      }
      for (std::size_t j = n; j < c_stride; ++j)
        EXPECT_EQ(c[i * c_stride + j], before[i * c_stride + j]) << "wrote outside";
    }
  }
}

TEST_P(Gemm, PanelsAndBarePanelsAgree) {
  const auto [m, k, n] = GetParam();
  const auto a = random_values(m * k, 1), w = random_values(k * n, 2);
  const PackedMatrix packed({w.data(), w.size()}, k, n);
  AlignedVector<float> whole(m * n), part(m * n);
  gemm(m, {a.data(), k}, packed, {whole.data(), n});
  for (std::size_t p = 0; p < packed.n_panels(); ++p)
    gemm_panels(m, {a.data(), k}, packed, p, 1, {part.data() + p * kPanel, n});
  EXPECT_EQ(whole, part);
  for (std::size_t p = 0; p < packed.n_panels(); ++p)
    gemm_bare_panel(m, {a.data(), k}, k, packed.panel(p), std::min(kPanel, n - p * kPanel),
                    {part.data() + p * kPanel, n});
  EXPECT_EQ(whole, part);
}

INSTANTIATE_TEST_SUITE_P(Shapes, Gemm,
                         ::testing::Values(Case{1, 1, 1}, Case{1, 128, 16}, Case{5, 7, 17}, Case{6, 32, 48},
                                           Case{13, 64, 31}, Case{97, 128, 100}, Case{300, 20, 15},
                                           Case{67, 300, 33}));

TEST(PackedMatrix, TransposesAndPicksColumns) {
  const auto w = random_values(5 * 37, 1), bias = random_values(37, 2);
  const PackedMatrix packed({w.data(), w.size()}, 5, 37, {bias.data(), bias.size()});
  const PackedMatrix turned = packed.transposed();
  ASSERT_EQ(turned.k(), 37u);
  ASSERT_EQ(turned.n(), 5u);
  const std::vector<std::int32_t> ids = {36, 0, 17, 17};
  const PackedMatrix picked = packed.columns(ids);
  for (std::size_t i = 0; i < 5; ++i) {
    for (std::size_t j = 0; j < 37; ++j) {
      EXPECT_EQ(packed.at(i, j), w[i * 37 + j]);
      EXPECT_EQ(turned.at(j, i), w[i * 37 + j]);
    }
    for (std::size_t j = 0; j < ids.size(); ++j)
      EXPECT_EQ(picked.at(i, j), w[i * 37 + static_cast<std::size_t>(ids[j])]);
  }
  EXPECT_EQ(picked.bias()[0], bias[36]);
  EXPECT_EQ(packed.columns({}).n_panels(), 0u);
}

// Every instruction set that this CPU can run gives the values; those with FMA give the same bits.
TEST(Gemm, EveryTargetAgrees) {
  const std::size_t m = 13, k = 96, n = 40;
  const auto a = random_values(m * k, 1), w = random_values(k * n, 2);
  const PackedMatrix packed({w.data(), w.size()}, k, n);
  AlignedVector<float> expected(m * n);
  gemm(m, {a.data(), k}, packed, {expected.data(), n});
  for (std::int64_t targets = hwy::SupportedTargets(); targets != 0; targets &= targets - 1) {
    hwy::SetSupportedTargetsForTest(targets & -targets);
    AlignedVector<float> c(m * n);
    gemm(m, {a.data(), k}, packed, {c.data(), n});
    for (std::size_t i = 0; i < c.size(); ++i) EXPECT_NEAR(c[i], expected[i], 1e-4f) << simd_name();
  }
  hwy::SetSupportedTargetsForTest(0);
}

}  // namespace
}  // namespace deeptail
