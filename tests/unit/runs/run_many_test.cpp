// Items that run together give the same records as items that run one by one.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <set>

#include "runs/run_suite.h"
#include "sizes.h"

namespace deeptail {
namespace {

constexpr const char* kManyDists[] = {"hex", "caps"};
constexpr const char* kManySuite = R"(
name = "many"
models = ["{}/models/dt-1l"]
distributions = [{}]
replicas = 2
[targets]
band = [1e-6, 1e-4]
count = 2
truth = "{}/truth/{{model}}-{{dist}}.json"
[[methods]]
method = "mc"
budget = 64
[[methods]]
method = "mc"
variant = "more"
budget = 100
)";

// What each batch held; which estimate is refused, and after how many the device is lost.
struct Batches {
  std::vector<std::size_t> sizes = {};
  std::size_t refused = 1000, fail_after = 1000;
};

Grid read_grid(std::size_t n_dists) {
  const std::string root = DEEPTAIL_SOURCE;
  std::string dists;
  for (const char* name : std::span(kManyDists).first(n_dists))
    dists += fmt::format("\"{}/distributions/{}.json\",", root, name);
  return build_grid(parse_suite(fmt::format(fmt::runtime(kManySuite), root, dists, root), "many.toml"));
}

Grid many_grid(Batches* batches, std::size_t n_dists = 1) {
  static const Grid one = read_grid(1);
  Grid grid = n_dists == 1 ? one : read_grid(n_dists);
  if (batches == nullptr) return grid;
  Method& method = grid.suite.variants[1].method;
  method.run_many = [batches, run = method.run](std::span<const MethodTask> tasks, const Answers& answers,
                                                ThreadPool&, const Watch& watch) {
    batches->sizes.push_back(tasks.size());
    ThreadPool pool(1);
    for (std::size_t i = tasks.size(); i-- > 0;) {  // in another order than asked
      if (batches->fail_after-- == 0) throw DeviceError(Device::kCuda, "lost");
      if (!goes_on(watch, {})) return;
      if (batches->refused-- == 0)
        answers.on_refusal(i, "too large");
      else
        answers.on_estimate(i, run(tasks[i].question, tasks[i].seed, pool, {}));
    }
  };
  return grid;
}

class RunMany : public testing::Test {
 protected:
  std::string folder(const char* name) {
    return (std::filesystem::temp_directory_path() / fmt::format("deeptail-many-{}-{}", ::getpid(), name))
        .string();
  }
  void TearDown() override {
    for (const char* name : {"alone", "together", "failed", "stopped", "large"})
      std::filesystem::remove_all(folder(name));
  }
  RunOutcome run(const Grid& grid, const char* name, const Watch& watch = {}) {
    ThreadPool pool(1);
    return run_suite(grid, {.out = folder(name)}, pool, watch);
  }
};

TEST_F(RunMany, SameRecordsAsOneByOne) {
  constexpr std::size_t kPairs = sized<std::size_t>(2, 1), kItems = 8 * kPairs;
  Batches batches;
  const Grid alone = many_grid(nullptr, kPairs), together = many_grid(&batches, kPairs);
  std::uint64_t told = 0;
  std::set<std::string> named;
  const auto follow = [&](const Progress& p) {
    EXPECT_EQ(p.total, kItems);
    EXPECT_GE(p.done, told);
    told = p.done;
    if (!p.note.empty()) named.emplace(p.note);
    return true;
  };
  run(alone, "alone");
  EXPECT_EQ(run(together, "together", follow).done, kItems);
  EXPECT_EQ(told, kItems);
  EXPECT_GE(named.size(), kPairs);  // items are named as they begin; those that run together by the first
  EXPECT_EQ(batches.sizes, std::vector<std::size_t>(kPairs, 4));  // pairs apart, replicas together
  const deeptail::Run a = read_run(folder("alone")), b = read_run(folder("together"));
  ASSERT_EQ(a.items.size(), kItems);
  ASSERT_EQ(b.items.size(), kItems);
  for (std::size_t i = 0; i < kItems; ++i) {
    EXPECT_EQ(a.items[i].id, b.items[i].id);
    EXPECT_EQ(a.items[i].log_p, b.items[i].log_p);
    EXPECT_EQ(a.items[i].seed, b.items[i].seed);
    EXPECT_EQ(a.items[i].target_text, b.items[i].target_text);
  }
  EXPECT_EQ(run(together, "together").kind, RunOutcome::Kind::kAlreadyFinished);
}

TEST_F(RunMany, AFailingDeviceEndsTheRunAndTheRestIsDoneLater) {
  Batches batches{.fail_after = 2};
  const Grid grid = many_grid(&batches);
  EXPECT_THROW(run(grid, "failed"), InputError);
  const std::size_t before = read_run(folder("failed")).items.size();
  EXPECT_GE(before, 2u);
  EXPECT_LT(before, 8u);
  // What cannot be done has no answer.
  batches = {.refused = 1};
  EXPECT_EQ(run(grid, "failed").done, 8u);
  EXPECT_EQ(batches.sizes, (std::vector<std::size_t>{2}));
  std::size_t refused = 0;
  for (const RunItem& item : read_run(folder("failed")).items)
    refused += item.warnings == std::vector<std::string>{"no answer: too large"};
  EXPECT_EQ(refused, 1u);
}

// One by one, too: what an event refuses is no answer, a device that fails ends the run.
TEST_F(RunMany, OnlyADeviceEndsTheRun) {
  Grid grid = many_grid(nullptr);
  auto& run_one = grid.suite.variants[0].method.run;
  const auto refusing = [&](const auto& error) {
    run_one = [error](const Question&, std::uint64_t, ThreadPool&, const Watch&) -> Estimate { throw error; };
  };
  refusing(DeviceError(Device::kCuda, "lost"));
  EXPECT_THROW(run(grid, "failed"), DeviceError);
  refusing(InputError("device cuda: not of this target"));
  EXPECT_EQ(run(grid, "failed").done, 8u);
}

TEST_F(RunMany, ActivationsThatDoNotFitGiveNoAnswer) {
  Grid grid = many_grid(nullptr);
  grid.suite.variants[0].method.calibration = std::uint64_t{1} << 50;
  EXPECT_EQ(run(grid, "large").done, 8u);
  std::size_t refused = 0;
  for (const RunItem& item : read_run(folder("large")).items)
    refused += item.warnings.size() == 1 && item.warnings[0].starts_with("no answer: mc on") &&
               item.variant == grid.suite.variants[0].label;
  EXPECT_EQ(refused, 4u);
}

TEST_F(RunMany, StopsWhenTold) {
  Batches batches;
  const Grid grid = many_grid(&batches);
  const RunOutcome outcome = run(grid, "stopped", [](const Progress& p) { return p.done < 3; });
  EXPECT_EQ(outcome.kind, RunOutcome::Kind::kStopped);
  EXPECT_EQ(outcome.done, 3u);
  EXPECT_EQ(run(grid, "stopped").done, 8u);
}

TEST(SuiteOnDevice, MethodsThatKnowTheDeviceRunThere) {
  const std::string text =
      "name = \"x\"\nmodels = [\"m\"]\ndistributions = [\"d\"]\n[targets]\nband = [1e-6, 1e-4]\ncount = 3\n"
      "[[methods]]\nmethod = \"tokensplit\"\n[[methods]]\nmethod = \"mc\"\n"
      "[[methods]]\nmethod = \"tokensplit\"\nvariant = \"here\"\ndevice = \"cpu\"\n";
  const Suite there = parse_suite(text, "x.toml", Device::kCuda), here = parse_suite(text, "x.toml");
  EXPECT_EQ(there.variants[0].method.device, Device::kCuda);
  EXPECT_TRUE(there.variants[0].method.run_many);
  EXPECT_EQ(there.variants[1].method.device, Device::kCpu);
  EXPECT_EQ(there.variants[2].method.device, Device::kCpu);
  EXPECT_EQ(here.variants[0].method.device, Device::kCpu);
  EXPECT_FALSE(here.variants[0].method.run_many);
  EXPECT_EQ(there.variants[0].label, here.variants[0].label);
}

}  // namespace
}  // namespace deeptail
