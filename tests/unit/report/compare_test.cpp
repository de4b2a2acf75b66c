// Two runs side by side.
#include "core/json.h"
#include "deeptail/report.h"
#include "report/run_fixture.h"

namespace deeptail {
namespace {

Run three_targets() {
  auto run = small_run();
  run.items = {estimate(1, 100, 0.1), estimate(2, 10, 0.01), estimate(3, 50, 0.05)};
  return run;
}

TEST(Compare, OnlyCommonItemsCountInTheSameOrder) {
  auto a = three_targets(), b = three_targets();
  a.items.erase(a.items.begin());
  b.items.push_back(estimate(4, 10, 0.01));
  b.items.push_back(estimate(4, 10, 0.01, "mc"));
  b.items[1].log_p = std::log(0.5);
  std::swap(b.items[0], b.items[2]);
  const CommonItems common = common_items(a, b);
  EXPECT_EQ(common.only_a, 0u);
  EXPECT_EQ(common.only_b, 3u);
  ASSERT_EQ(common.a.items.size(), 2u);
  for (std::size_t i = 0; i < 2; ++i) EXPECT_EQ(common.a.items[i].target, common.b.items[i].target);
  EXPECT_EQ(common.b.items[0].log_p, std::log(0.5));
}

TEST(Compare, BothAreJudgedByTheLargerCount) {
  auto a = three_targets(), b = three_targets();
  b.items[0].truth_count = 2'000;
  b.items[0].truth_samples = 10'000;
  a.items[1] = without_truth(a.items[1]);
  b.items[2] = without_truth(b.items[2]);
  const CommonItems common = common_items(a, b);
  EXPECT_EQ(common.a.items[0].truth_count, 2'000u);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(common.a.items[i].truth_samples, common.b.items[i].truth_samples);
    EXPECT_GT(common.a.items[i].truth_samples, 0u);
  }
}

TEST(Compare, RefusesOtherModelsAndNothingInCommon) {
  auto a = three_targets(), b = three_targets();
  a.header.models[0].sha256 = std::string(64, 'a');
  b.header.models[0].sha256 = std::string(64, 'b');
  EXPECT_THROW(common_items(a, b), InputError);
  b.header.models[0].sha256 = a.header.models[0].sha256;
  EXPECT_NO_THROW(common_items(a, b));
  for (RunItem& item : b.items) item.variant = "other";
  EXPECT_THROW(common_items(a, b), InputError);
}

TEST(Compare, DataHoldsBothRunsAndTheChangeOfTheLoss) {
  auto a = three_targets(), b = three_targets();
  for (RunItem& item : b.items) item.log_p += std::log(3.0);
  const CommonItems common = common_items(a, b);
  ThreadPool pool(1);
  const Report first = make_report(common.a, pool), second = make_report(common.b, pool);
  const std::vector<Difference> differences = run_differences(common, first, pool);
  ASSERT_EQ(differences.size(), 1u);
  EXPECT_EQ(differences[0].targets, 3u);
  EXPECT_LT(differences[0].loss[kBenchmarking].high, 0.0) << "A is exact, B three times too high";
  const Json json = parse_json(comparison_json(common, first, second, differences), "test");
  EXPECT_EQ(json["a"]["items"]["p"].size(), 3u);
  EXPECT_NEAR(json["b"]["items"]["p"][0].get<double>(), std::log10(0.3), 1e-4);
  EXPECT_EQ(json["differences"][0].size(), 17u);
  EXPECT_EQ(json["only_a"], 0);
}

}  // namespace
}  // namespace deeptail
