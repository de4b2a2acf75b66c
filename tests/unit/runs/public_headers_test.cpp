// What a program that uses deeptail as a library writes.
#include "deeptail/deeptail.h"

#include <gtest/gtest.h>

namespace {

TEST(PublicHeaders, OneIncludeEstimates) {
  const auto model = deeptail::Transformer::load(DEEPTAIL_SOURCE "/models/dt-1l");
  const auto dist = deeptail::load_distribution(DEEPTAIL_SOURCE "/distributions/hex.json");
  deeptail::ThreadPool pool;
  const deeptail::Estimate e =
      deeptail::mc(model, dist, deeptail::Target({69}, model.head()), {.budget = 2000}, pool);
  EXPECT_NEAR(std::exp(e.log_p), 0.204, 0.05);  // 5.5 standard deviations
}

}  // namespace
