// A model of the right sizes and another architecture must not take a path that was not made for it. Needs no
// GPU.
#include <gtest/gtest.h>

#include <functional>

#include "compute_cuda/fast/fast_forward.h"

namespace deeptail::cuda {
namespace {

DenseModel zoo_sizes() {
  DenseModel m;
  m.n_layers = 2, m.d_model = 128, m.n_heads = 4, m.d_head = 32, m.d_mlp = 512, m.n_ctx = 64,
  m.d_vocab = 4096;
  return m;
}

TEST(DeviceArchitecture, SizesAloneDoNotFit) {
  EXPECT_TRUE(FastForward::fits(zoo_sizes(), 33));
  EXPECT_NO_THROW(require_forward_sizes(zoo_sizes(), 33));
  const std::vector<std::function<void(Architecture&)>> changes = {
      [](Architecture& a) { a.norm = Architecture::Norm::kRms; },
      [](Architecture& a) { a.positions = Architecture::Positions::kRotary; },
      [](Architecture& a) { a.residual = Architecture::Residual::kParallel; },
      [](Architecture& a) { a.mlp = Architecture::Mlp::kGeluTanh; },
      [](Architecture& a) { a.mlp = Architecture::Mlp::kSwiGlu; },
      [](Architecture& a) { a.attention_scale = Architecture::AttentionScale::kOne; },
      [](Architecture& a) { a.qk_norm = true; },
      [](Architecture& a) { a.kv_groups = 2; }};
  for (const auto& change : changes) {
    DenseModel m = zoo_sizes();
    change(m.arch);
    EXPECT_FALSE(FastForward::fits(m, 33));
    EXPECT_NO_THROW(require_forward_sizes(m, 33));
  }
}

TEST(DeviceArchitecture, SizesThatNoKernelTakesAreRefused) {
  EXPECT_THROW(require_forward_sizes(zoo_sizes(), 129), Failure);
  DenseModel wide_heads = zoo_sizes(), odd = zoo_sizes();
  wide_heads.d_head = 256, odd.d_model = 100;
  EXPECT_THROW(require_forward_sizes(wide_heads, 33), Failure);
  EXPECT_THROW(require_forward_sizes(odd, 33), Failure);
}

}  // namespace
}  // namespace deeptail::cuda
