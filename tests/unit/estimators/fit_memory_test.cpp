// Populations that memory bounds, and budgets that large models bound.
#include "estimators/tokensplit/fit_memory.h"

#include <gtest/gtest.h>

#include "unit/estimators/subject.h"

namespace deeptail {
namespace {

TEST(FitMemory, LevelsShrinkUntilTheyFit) {
  const Sizes wanted{.first_draw = 5000, .at_level = {4000, 1000, 500}};
  const auto bytes = [](const Sizes& s) { return 10.0 * static_cast<double>(s.most()); };
  EXPECT_EQ(fitted(wanted, 1e9, bytes).at_level, wanted.at_level);
  const Sizes half = fitted(wanted, 20000.0, bytes);
  EXPECT_LE(bytes(half), 20000.0);
  EXPECT_GT(half.at_level[0], 1500u);
  EXPECT_EQ(half.at_level[1], 1000u);
  EXPECT_EQ(half.first_draw, 5000u);
  EXPECT_EQ(fitted(wanted, 1.0, bytes).most(), 32u);  // whoever allocates them says so
}

TEST(FitMemory, ReplicasTakeTurns) {
  EXPECT_EQ(fitting_at_once(8, 0.0), 8u);
  EXPECT_EQ(fitting_at_once(8, populations_limit() / 3.5), 3u);
  EXPECT_EQ(fitting_at_once(8, 2.0 * populations_limit()), 1u);
}

ModelConfig large_model(std::size_t n_layers) {
  ModelConfig c;
  c.n_layers = n_layers, c.d_model = 576, c.n_heads = 9, c.d_head = 64, c.d_mlp = 1536, c.n_ctx = 128, c.d_vocab = 49152;
  return c;
}

TEST(DefaultBudget, FollowsTheModelsSize) {
  std::vector<TokenId> ids = {1, 2};
  Distribution dist;
  dist.name = "d";
  dist.d_vocab = 49152;
  dist.tables.emplace_back("t", ids, std::vector<double>{0.5, 0.5}, "t");
  dist.positions.assign(33, 0);
  const double few = tokensplit_budget(large_model(2), dist), many = tokensplit_budget(large_model(30), dist),
               more = tokensplit_budget(large_model(300), dist);
  EXPECT_GT(few, many);
  EXPECT_LE(many * forward_flops(large_model(30), 33), 1.01e14);
  EXPECT_EQ(more, 1.2e4);  // as much as a scan needs
  EXPECT_GT(tokensplit_budget(large_model(30), dist, Device::kCuda), many);
}

}  // namespace
}  // namespace deeptail
