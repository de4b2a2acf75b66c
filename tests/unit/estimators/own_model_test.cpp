// tokensplit on a model and a distribution of one's own, where the model is at hand. The truth was counted on 2^24 inputs
// (tests/statistical/tokensplit_own, which looks at rarer tokens too).
#include <gtest/gtest.h>

#include <filesystem>

#include "deeptail/estimators.h"
#include "deeptail/load.h"
#include "sizes.h"

namespace deeptail {
namespace {

const std::string kStoriesModel = DEEPTAIL_SHARED_DATA "/real/stories260K-hf";

TEST(OwnModel, StoriesAfterDigits) {
  if (!std::filesystem::exists(kStoriesModel)) GTEST_SKIP() << "there is no " << kStoriesModel;
  if (sized(false, true)) GTEST_SKIP() << "a number, and so the release build's matter";
  constexpr double kCounted = 7396.0 / 16777216.0;  // token 286, " was"
  const LoadedModel model = load_model(kStoriesModel);
  const Distribution dist = load_distribution(DEEPTAIL_TEST_DATA "/own/stories-digits.json", model);
  ThreadPool pool(2);
  const TokensplitConfig config{.budget = 2e4, .seed = 1};
  const Estimate e = tokensplit(model.transformer, dist, Target({286}, model.head()), config, pool);
  EXPECT_LE(std::exp(e.log_low), kCounted);
  EXPECT_GE(std::exp(e.log_high), kCounted);
  EXPECT_NEAR(e.log_p, std::log(kCounted), 0.4);
}

}  // namespace
}  // namespace deeptail
