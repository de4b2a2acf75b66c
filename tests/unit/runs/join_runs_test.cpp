// Several runs shown as one.
#include <gtest/gtest.h>

#include "deeptail/runs.h"

namespace deeptail {
namespace {

RunItem item_to_join(const std::string& model, TokenId target) {
  return {.id = fmt::format("{}-{}", model, target),
          .model = model,
          .dist = "hex",
          .method = "mc",
          .variant = "mc",
          .target = {target}};
}

Run run_to_join(const std::string& model, std::vector<TokenId> targets) {
  Run run{.header = {.version = "0.1.0",
                     .suite_name = "zoo-" + model,
                     .suite_text = "models = [" + model + "]\n",
                     .models = {{model, std::string(64, 'b'), 1, 128, 4096}},
                     .distributions = {{"hex", std::string(64, 'c')}},
                     .truths = {{model + "-hex", std::string(64, 'd')}},
                     .items = 3,
                     .created = "2025-01-01T00:00:00Z"},
          .torn = 1};
  for (const TokenId target : targets) run.items.push_back(item_to_join(model, target));
  return run;
}

template <class Action>
void expect_not_joined(const Action& action, const std::string& part) {
  try {
    action();
    FAIL() << "joined";
  } catch (const InputError& e) {
    EXPECT_NE(std::string(e.what()).find(part), std::string::npos) << e.what();
  }
}

TEST(JoinRuns, UnionOfItemsAndFiles) {
  deeptail::Run other = run_to_join("dt-1l", {5, 4});
  other.header.device = "cuda";
  const deeptail::Run run = join_runs({run_to_join("dt-2l", {7}), other});
  ASSERT_EQ(run.items.size(), 3u);
  EXPECT_EQ(run.items[0].id, "dt-1l-4");
  EXPECT_EQ(run.items[2].id, "dt-2l-7");
  EXPECT_EQ(run.torn, 2u);
  EXPECT_EQ(run.header.items, 6u);
  EXPECT_EQ(run.header.suite_name, "zoo-dt-2l, zoo-dt-1l");
  EXPECT_EQ(run.header.suite_text, "models = [dt-2l]\n\nmodels = [dt-1l]\n");
  EXPECT_EQ(run.header.device, "cpu, cuda");
  EXPECT_EQ(run.header.version, "0.1.0");
  EXPECT_EQ(run.header.models.size(), 2u);
  EXPECT_EQ(run.header.distributions.size(), 1u);
}

TEST(JoinRuns, OneRunStaysAsItIs) {
  const deeptail::Run run = join_runs({run_to_join("dt-1l", {3})});
  EXPECT_EQ(run.items.size(), 1u);
  EXPECT_EQ(run.header.suite_name, "zoo-dt-1l");
}

TEST(JoinRuns, RefusesWhatDoesNotFit) {
  deeptail::Run other = run_to_join("dt-2l", {7});
  other.header.distributions[0].sha256 = std::string(64, 'e');
  expect_not_joined(
      [&] {
        join_runs({run_to_join("dt-1l", {1}), other});
      },
      "differ in their distribution hex");
  expect_not_joined(
      [&] {
        join_runs({run_to_join("dt-1l", {1, 2}), run_to_join("dt-1l", {2})});
      },
      "two of the runs have an estimate of token 2 on hex");
  expect_not_joined([&] { join_runs({}); }, "no runs");
}

TEST(CompleteTargets, AreThoseOfEverySettingAndReplica) {
  auto run = run_to_join("a", {1, 2});
  RunItem other = item_to_join("a", 1);
  other.variant = "qld";
  run.items.push_back(other);
  std::vector<RunItem> kept = complete_targets(run).items;
  ASSERT_EQ(kept.size(), 2u);
  for (const RunItem& item : kept) EXPECT_EQ(item.target, std::vector<TokenId>{1});
  other.replica = 1;
  run.items.push_back(other);
  other.target = {2};
  run.items.push_back(other);
  EXPECT_EQ(complete_targets(run).items.size(), 3u) << "the second target lacks the first replica";
  run.items.push_back(item_to_join("b", 1));
  EXPECT_EQ(complete_targets(run).items.size(), 4u) << "another model has settings of its own";
  EXPECT_EQ(complete_targets(run_to_join("a", {1, 2})).items.size(), 2u);
}

}  // namespace
}  // namespace deeptail
