// A method that answers all targets of a pair by the same draws: a run that was cut and continued, or split into shards,
// has the records of one that was not.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <map>
#include <set>

#include "runs/forecast.h"
#include "runs/run_suite.h"
#include "sizes.h"

namespace deeptail {
namespace {

constexpr const char* kSharedSuite = R"(
name = "shared"
models = ["{0}/models/dt-1l"]
distributions = ["{0}/distributions/hex.json"]
replicas = 2
[targets]
{1}
[[methods]]
method = "all-tokens"
budget = 1e4
[[methods]]
method = "mc"
budget = 64
)";
constexpr const char* kBand = "band = [1e-6, 1e-2]\ncount = 6\ntruth = \"{model}-{dist}.json\"";

Grid shared_grid(const std::string& targets) {
  const std::string text = fmt::format(fmt::runtime(kSharedSuite), DEEPTAIL_SOURCE, targets);
  return build_grid(parse_suite(text, "shared.toml"));
}

// 6 targets, 2 replicas, 2 methods: all in four calls of estimate_all.
const Grid& band_grid() {
  static const Grid grid = shared_grid(kBand);
  return grid;
}

class SharedDraws : public testing::Test {
 protected:
  std::string folder(const std::string& name) {
    const std::string path =
        (std::filesystem::temp_directory_path() / fmt::format("deeptail-shared-{}-{}", ::getpid(), name))
            .string();
    made_.insert(path);
    return path;
  }
  void TearDown() override {
    for (const std::string& path : made_) std::filesystem::remove_all(path);
  }
  RunOutcome run(const Grid& grid, RunOptions options, std::size_t threads = 1, const Watch& watch = {}) {
    ThreadPool pool(threads);
    return run_suite(grid, options, pool, watch);
  }
  static void expect_same(const deeptail::Run& a, const deeptail::Run& b) {
    ASSERT_EQ(a.items.size(), b.items.size());
    for (std::size_t i = 0; i < a.items.size(); ++i) {
      EXPECT_EQ(a.items[i].id, b.items[i].id);
      EXPECT_EQ(a.items[i].seed, b.items[i].seed);
      EXPECT_EQ(a.items[i].log_p, b.items[i].log_p);
      EXPECT_EQ(a.items[i].log_high, b.items[i].log_high);
      EXPECT_EQ(a.items[i].cost.forward_equivalents, b.items[i].cost.forward_equivalents);
      EXPECT_EQ(a.items[i].warnings, b.items[i].warnings);
    }
  }

 private:
  std::set<std::string> made_;
};

TEST_F(SharedDraws, ACutRunIsContinuedWithTheSameAnswers) {
  const Grid& grid = band_grid();
  EXPECT_EQ(run(grid, {.out = folder("whole")}, 2).done, 24u);
  const deeptail::Run whole = read_run(folder("whole"));
  // Cut after each few items, so that calls find some of their targets done.
  const std::string cut = folder("cut");
  std::uint64_t most = 3;
  std::size_t times = 0;
  for (;; most += sized(4, 12), ++times) {
    const RunOutcome outcome = run(grid, {.out = cut}, 1, [&](const Progress& p) { return p.done < most; });
    if (outcome.kind == RunOutcome::Kind::kFinished) break;
    ASSERT_EQ(outcome.kind, RunOutcome::Kind::kStopped);
    ASSERT_LT(times, 10u);
  }
  EXPECT_GE(times, sized(3u, 1u));
  expect_same(whole, read_run(cut));
}

TEST_F(SharedDraws, SeedsAndWorkAreSharedByTheTargetsOfAReplica) {
  const Grid& grid = band_grid();
  run(grid, {.out = folder("run")});
  std::map<std::uint64_t, std::vector<RunItem>> by_seed;
  for (const RunItem& item : read_run(folder("run")).items)
    if (item.method == "all-tokens") by_seed[item.seed].push_back(item);
  ASSERT_EQ(by_seed.size(), 2u);
  ThreadPool pool(1);
  for (const auto& [seed, items] : by_seed) {
    EXPECT_EQ(items.size(), 6u);
    double work = 0.0;
    for (const RunItem& item : items) work += item.cost.forward_equivalents;
    EXPECT_NEAR(work, 1e4, 500.0);
    // Alone, with the settings of the record: the same answer.
    const LoadedModel model = load_model(grid.pairs[0].model_path);
    const auto law = load_law(grid.pairs[0].dist_path, model);
    const NextToken event(Target({items[0].target[0]}, model.head()));
    const Estimate e = run_method(grid.suite.variants[0].method, Question(model, *law, event), seed, pool);
    EXPECT_EQ(e.log_high, items[0].log_high);
    EXPECT_EQ(std::get<double>(e.settings[1].second), 1e-6);  // above: the lower end of the band
    EXPECT_EQ(std::get<double>(e.settings[2].second), 1e-2);
  }
}

TEST_F(SharedDraws, ShardsTakeAllTargetsOfAReplica) {
  const Grid& grid = band_grid();
  std::size_t n = 0;
  for (const std::size_t shard : {1, 2, 3}) {
    std::map<std::uint32_t, std::size_t> targets;  // by replica
    for (const std::size_t k : items_of_shard(grid, shard, 3)) {
      ++n;
      if (grid.shares_draws(grid.items[k])) ++targets[grid.items[k].replica];
    }
    for (const auto& [replica, count] : targets) EXPECT_EQ(count, 6u) << replica;
  }
  EXPECT_EQ(n, grid.items.size());
  if (sized(false, true)) return;
  run(grid, {.out = folder("whole")});
  for (const std::size_t shard : {2, 1}) run(grid, {.out = folder("shards"), .shard = shard, .n_shards = 2});
  expect_same(read_run(folder("whole")), read_run(folder("shards")));
}

TEST_F(SharedDraws, WhatIsNeverSaidHasTheBound) {
  const Grid grid = shared_grid("tokens = [18, 4000]");
  run(grid, {.out = folder("named")});
  std::size_t seen = 0, bound = 0;
  for (const RunItem& item : read_run(folder("named")).items) {
    if (item.method != "all-tokens") continue;
    seen += item.target[0] == 18 && item.status == "ok";
    bound += item.target[0] == 4000 && item.status == "not_reached_upper_bound" && std::isinf(item.log_p) &&
             item.log_high < std::log(1e-2);
  }
  EXPECT_EQ(seen, 2u);
  EXPECT_EQ(bound, 2u);
}

TEST_F(SharedDraws, AForecastProbesOneCallForAll) {
  ThreadPool pool(1);
  const Forecast forecast =
      forecast_run(band_grid(), {.out = folder("none"), .only = {"all-tokens"}}, pool, {});
  EXPECT_EQ(forecast.items, 12u);
  EXPECT_GT(forecast.seconds(), 0.0);
}

}  // namespace
}  // namespace deeptail
