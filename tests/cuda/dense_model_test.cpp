// What kernels are given of every family, and the functions that they call, against transformers' logits. Needs no
// GPU.
#include "compute_cuda/dense_model.h"

#include "dense_forward.h"
#include "unit/model/fixture.h"

namespace deeptail::cuda {
namespace {

class DenseModelTest : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Families, DenseModelTest, ::testing::ValuesIn(family_fixture_names()), name_of_param);

double worst_logit(const Fixture& fixture, const DenseForward& forward) {
  double worst = 0.0;
  for (const FixtureSequence& s : fixture.sequences) {
    const auto found = forward.logits(s.tokens);
    for (std::size_t i = 0; i < found.size(); ++i)
      worst = std::max(worst, std::abs(static_cast<double>(found[i]) - s.logits[i]));
  }
  return worst;
}

TEST_P(DenseModelTest, SizesAreThoseOfKernels) {
  const DenseModel m = dense_model(load_fixture(GetParam()).model);
  EXPECT_NO_THROW(require_forward_sizes(m, 16));
  EXPECT_EQ(m.blocks[0].w_qkv.size(), m.d_model * m.d_qkv());
  EXPECT_EQ(m.blocks[0].w_in.size(), m.d_model * m.mlp_columns());
  EXPECT_EQ(m.blocks[0].b_in.size(), m.mlp_columns());
  EXPECT_EQ(m.blocks[0].w_out.size(), m.d_mlp * m.d_model);
  EXPECT_EQ(m.w_u.size(), m.d_model * m.d_vocab);
}

TEST_P(DenseModelTest, LogitsEqualTransformers) {
  const Fixture fixture = load_fixture(GetParam());
  EXPECT_LE(worst_logit(fixture, DenseForward(dense_model(fixture.model))), 2e-5);
}

TEST_P(DenseModelTest, TwofoldFactorsAreNearlyExact) {
  const Fixture fixture = load_fixture(GetParam());
  EXPECT_LE(worst_logit(fixture, DenseForward(dense_model(fixture.model), true)), 1e-4);
}

TEST(HeadStep, LanesDoNotMatter) {
  const std::vector<float> c = {0.8f, 0.5f, 0.1f}, s = {0.6f, 0.25f, 0.9f};
  std::vector<float> norm(16);
  for (std::size_t i = 0; i < 10; ++i) norm[i] = 0.5f + 0.1f * static_cast<float>(i);
  const HeadStep step{16, 10, 3, c.data(), s.data(), norm.data(), 1e-5f};
  std::vector<std::vector<float>> found;
  for (const int lanes : {1, 3, 8, 32}) {
    std::vector<float> head(16);
    for (std::size_t i = 0; i < 10; ++i) head[i] = static_cast<float>(i) - 4.5f;
    for (int lane = 0; lane < lanes; ++lane) step.finish(head.data(), 82.5f, lane, lanes);
    found.push_back(head);
  }
  for (const auto& head : found) EXPECT_EQ(head, found[0]);
  for (std::size_t i = 10; i < 16; ++i) EXPECT_EQ(found[0][i], 0.0f);
  EXPECT_NE(found[0][6], 1.5f);  // does not turn, but is normed
}

TEST(Gates, OfLargeNumbersAreFinite) {
  for (const float x : {-1e30f, -200.0f, -1.0f, 0.0f, 1.0f, 200.0f, 1e10f}) {
    EXPECT_TRUE(std::isfinite(swiglu_fp32(x, 2.0f))) << x;
    EXPECT_TRUE(std::isfinite(gelu_tanh_fp32(std::max(x, -1e10f)))) << x;
  }
  EXPECT_EQ(swiglu_fp32(-200.0f, 3.0f), 0.0f);
  EXPECT_EQ(gelu_tanh_fp32(200.0f), 200.0f);
}

}  // namespace
}  // namespace deeptail::cuda
