// How long a run will take, told from methods whose time is known.
#include "runs/forecast.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <thread>

#include "sizes.h"

namespace deeptail {
namespace {

constexpr std::uint64_t kUnits = 100;
constexpr std::chrono::milliseconds kUnit{20};

// Two distributions, two targets each, two methods.
Grid forecast_grid() {
  const std::string root = DEEPTAIL_SOURCE;
  return build_grid(
      parse_suite(fmt::format("name = \"forecast\"\nmodels = [\"{0}/models/dt-1l\"]\n"
                              "distributions = [\"{0}/distributions/hex.json\", "
                              "\"{0}/distributions/caps.json\"]\n[targets]\nband = [1e-6, 1e-4]\ncount = 2\n"
                              "truth = \"{0}/truth/{{model}}-{{dist}}.json\"\n"
                              "[[methods]]\nmethod = \"mc\"\nbudget = 64\n"
                              "[[methods]]\nmethod = \"gld\"\ncalibration = {1}\n",
                              root, sized(1 << 17, 1 << 13)),
                  "forecast.toml"));
}

// Sleeps through its work.
void make_slow(Method& method) {
  method.work = [](const Question&) { return kUnits; };
  method.run = [](const Question& q, std::uint64_t, ThreadPool&, const Watch& watch) {
    for (std::uint64_t done = 1; done <= kUnits; ++done) {
      std::this_thread::sleep_for(kUnit);
      if (!watch({.share = static_cast<double>(done) / static_cast<double>(kUnits), .done = done})) break;
    }
    return Estimate{.method = "mc", .target = q.next_token()->ids()};
  };
}

Estimate nothing(const Question& q, std::uint64_t, ThreadPool&, const Watch&) {
  return {.method = "gld", .target = q.next_token()->ids()};
}

TEST(Forecast, TellsAllFromAPart) {
  Grid grid = forecast_grid();
  grid.suite.variants.erase(grid.suite.variants.begin() + 1);
  std::erase_if(grid.items, [](const GridItem& item) { return item.variant == 1; });
  make_slow(grid.suite.variants[0].method);
  ThreadPool pool(1);
  std::size_t probes = 0;
  const Forecast f = forecast_run(grid, {}, pool, [&](const Progress& p) {
    EXPECT_EQ(p.total, 2u);
    EXPECT_EQ(p.done, probes++);
    return true;
  });
  ASSERT_EQ(f.rows.size(), 1u);
  EXPECT_EQ(f.items, 4u);
  EXPECT_EQ(f.done, 0u);
  EXPECT_EQ(f.rows[0].items, 4u);
  const double expected = 4.0 * static_cast<double>(kUnits) * std::chrono::duration<double>(kUnit).count();
  EXPECT_GT(f.seconds(), 0.7 * expected);
  EXPECT_LT(f.seconds(), 1.3 * expected);
  EXPECT_EQ(f.capture_seconds, 0.0);
  EXPECT_GT(f.peak_bytes, 0u);
}

TEST(Forecast, MethodsSeeAsManyActivationsAsTheyWant) {
  Grid grid = forecast_grid();
  std::vector<std::size_t> seen;
  grid.suite.variants[0].method.run = nothing;
  grid.suite.variants[1].method.run = [&](const Question& q, std::uint64_t, ThreadPool&, const Watch&) {
    const Activations& a = *q.activations;
    EXPECT_EQ(a.values.size(), a.n * a.d_model);
    EXPECT_EQ(a.last_tokens.size(), a.n);
    EXPECT_NE(std::count(a.values.end() - static_cast<std::ptrdiff_t>(a.d_model), a.values.end(), 0.0f),
              static_cast<std::ptrdiff_t>(a.d_model));
    seen.push_back(a.n);
    return Estimate{.method = "gld", .target = q.next_token()->ids()};
  };
  ThreadPool pool(2);
  const Forecast f = forecast_run(grid, {}, pool, {});
  ASSERT_FALSE(seen.empty());
  for (const std::size_t n : seen) EXPECT_EQ(n, grid.suite.variants[1].method.calibration);
  EXPECT_GT(f.capture_seconds, 0.0);
}

TEST(Forecast, TimesInTheFolderCount) {
  Grid grid = forecast_grid();
  for (SuiteVariant& variant : grid.suite.variants) variant.method.run = nothing;
  const std::string folder =
      (std::filesystem::temp_directory_path() / fmt::format("deeptail-forecast-{}", ::getpid())).string();
  ThreadPool pool(1);
  run_suite(grid, {.out = folder, .shard = 1, .n_shards = 2, .only = {"mc"}}, pool, {});
  double sum = 0.0;
  const std::vector<RunItem> items = read_run(folder).items;
  for (const RunItem& item : items) sum += item.seconds;
  const Forecast f = forecast_run(grid, {.out = folder, .only = {"mc"}}, pool, {});
  std::filesystem::remove_all(folder);
  ASSERT_EQ(items.size(), 2u);
  EXPECT_EQ(f.items, 4u);
  EXPECT_EQ(f.done, 2u);
  EXPECT_EQ(f.rows[0].items, 2u);
  ASSERT_NE(items[0].dist, items[1].dist);  // one of each is left, like the one that was done
  EXPECT_DOUBLE_EQ(f.rows[0].seconds, sum);
  EXPECT_EQ(f.rows[1].items, 0u);
}

}  // namespace
}  // namespace deeptail
