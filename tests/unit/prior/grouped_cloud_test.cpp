#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "deeptail/prior.h"

namespace deeptail {
namespace {

TEST(GroupedCloud, SplitsMeansFromResiduals) {
  std::mt19937_64 rng(1);
  std::normal_distribution<float> normal;
  const std::size_t n = 3000, d = 3;
  Activations a{.n = n, .d_model = d, .values = AlignedVector<float>(n * d), .last_tokens = {}};
  for (std::size_t i = 0; i < n; ++i) {
    // Tokens 7 and 9, and a few that are too rare for a group of their own.
    const TokenId token = i % 100 == 0 ? static_cast<TokenId>(100 + i / 100) : (i % 4 == 0 ? 9 : 7);
    a.last_tokens.push_back(token);
    for (std::size_t j = 0; j < d; ++j)
      a.values[i * d + j] = (token == 7 ? 5.0f : -5.0f) + static_cast<float>(j + 1) * normal(rng);
  }
  ThreadPool pool(1);
  const GroupedCloud cloud = group_activations(a, 16, 1e-9, pool);
  ASSERT_EQ(cloud.n_groups(), 3u);
  EXPECT_EQ(cloud.cumulative.back(), 1.0);
  EXPECT_NEAR(cloud.cumulative[0], 0.75, 0.01);
  EXPECT_NEAR(cloud.means[0], 5.0f, 0.15f);
  EXPECT_NEAR(cloud.means[d], -5.0f, 0.25f);
  for (std::size_t j = 0; j < d; ++j)
    EXPECT_NEAR(cloud.whitening.l[j * d + j], static_cast<double>(j + 1), 0.1 * static_cast<double>(j + 1));
  for (std::size_t i = 0; i < n; i += 37)
    for (std::size_t j = 0; j < d; ++j)
      EXPECT_NEAR(cloud.means[cloud.group[i] * d + j] + cloud.residuals[i * d + j], a.values[i * d + j],
                  1e-5);
}

TEST(GroupedCloud, NeedsTokensAndEnoughActivations) {
  ThreadPool pool(1);
  Activations a{.n = 10, .d_model = 2, .values = AlignedVector<float>(20, 1.0f)};
  EXPECT_THROW(group_activations(a, 2, 1e-6, pool), InputError);
  a.last_tokens = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
  EXPECT_THROW(group_activations(a, 1, 1e-6, pool), InputError);
}

}  // namespace
}  // namespace deeptail
