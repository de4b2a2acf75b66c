#include "deeptail/tune.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cmath>
#include <filesystem>

#include "unit/estimators/counting_model.h"

namespace deeptail {
namespace {

std::string refusal_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const InputError& e) {
    return e.what();
  }
  return "";
}

TEST(Tune, LossOfZerosHasAFloor) {
  const std::vector<double> q = {1e-4, 1e-4}, exact = q, twice = {2e-4, 2e-4}, zero = {1e-4, 0.0};
  EXPECT_EQ(tune_loss(q, exact), 0.0);
  EXPECT_NEAR(tune_loss(q, twice), std::log(2.0), 1e-12);
  EXPECT_NEAR(tune_loss(q, zero), 0.5 * std::log(1000.0), 1e-12);
}

TEST(Tune, TargetsLieInTheBand) {
  Truth truth;
  truth.ranges = {{"deeptail", 1, 0, 1000000}};
  for (TokenId t = 0; t < 100; ++t)
    truth.counts[t] = static_cast<std::uint64_t>(t) * 10 + 1;  // q from 1e-6 to 1e-3
  const auto found = targets_between(truth, 1e-4, 5e-4, 5);
  ASSERT_EQ(found.size(), 5u);
  for (const TokenId t : found) EXPECT_TRUE(truth.q(t) >= 1e-4 && truth.q(t) <= 5e-4);
  EXPECT_EQ(targets_between(truth, 1e-4, 5e-4, 1000).size(), 40u);
  EXPECT_TRUE(targets_between(truth, 0.1, 0.2, 5).empty());
}

TEST(Tune, ResultsSurviveTheFileAndAKilledRun) {
  const TuneConfig config{.models = {"m"}, .dists = {"d"}};
  EXPECT_EQ(tune_cells(config).size(), 18u);
  const TuneCell cell{"m", "d", "itgis", 0.67}, other{"m", "d", "itgis", 1.0};
  const std::string lines =
      result_line(config, cell, {.loss = 0.5, .targets = 3, .zeros = 1, .seconds = 2.0}) +
      result_line(config, other, {.loss = 0.25, .targets = 3});
  const auto results = parse_tune_results(lines + "{\"model\": \"m", config, "file");
  ASSERT_EQ(results.size(), 2u);
  EXPECT_EQ(results.at(cell).loss, 0.5);
  EXPECT_EQ(results.at(cell).zeros, 1u);
  const auto chosen = choose(results);
  ASSERT_EQ(chosen.size(), 1u);
  EXPECT_EQ(chosen[0].cell, other);

  // Nothing but a line without an end: ours, or somebody's notes.
  EXPECT_TRUE(parse_tune_results(lines.substr(0, 40), config, "file").empty());
  EXPECT_TRUE(parse_tune_results(lines.substr(0, 3), config, "file").empty());
  for (const char* notes : {"notes", "{\"a\": 1}", "{\"dose"})
    EXPECT_NE(refusal_of([&] { parse_tune_results(notes, config, "file"); }).find("holds no search"),
              std::string::npos);

  TuneConfig another = config;
  another.samples = 1 << 10;
  EXPECT_NE(refusal_of([&] { parse_tune_results(lines, another, "file"); }).find("another search"),
            std::string::npos);
  EXPECT_NE(refusal_of([&] { parse_tune_results("{\"a\": 1}\n", config, "file"); }).find("file line 1"),
            std::string::npos);
}

TEST(Tune, TableSurvivesTheFile) {
  const std::vector<ChosenTemperature> chosen = {
      {{"m", "d", "itgis", 0.67}, {.loss = 0.5, .targets = 3}},
      {{"m", "d", "mhis", 2.24}, {.loss = 1.5, .targets = 3, .zeros = 1}}};
  const auto found = parse_temperatures(to_json(chosen), "table");
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[1].cell, chosen[1].cell);
  EXPECT_EQ(found[1].result.zeros, 1u);
  for (const char* bad : {"{}", "[]", R"({"format": "x", "temperatures": []})",
                          R"({"format": "deeptail-temperatures-1", "temperatures": [{"model": "m"}]})"})
    EXPECT_NE(refusal_of([&] { parse_temperatures(bad, "table"); }).find("table"), std::string::npos) << bad;
}

TEST(Tune, RunsACell) {
  const CountingModel toy(6, {0.55, 0.3, 0.1, 0.05}, 10);
  Truth truth;
  truth.ranges = {{"deeptail", 1, 0, 1000000}};
  truth.counts[CountingModel::kTarget] = static_cast<std::uint64_t>(1e6 * toy.truth());
  TuneConfig config{.models = {"m"}, .dists = {"d"}, .q_high = 0.1, .samples = 1 << 12};
  const TokenTables law(toy.dist());
  const TuneSubject subject{toy.model(), law, truth};
  ThreadPool pool(1);
  for (const char* method : {"itgis", "mhis"}) {
    const auto result = run_tune_cell(subject, config, {"m", "d", method, 30.0}, pool);
    ASSERT_TRUE(result);
    EXPECT_EQ(result->targets, 1u);
    EXPECT_LT(result->loss, 0.5) << method;  // within a factor of 1.65
    EXPECT_FALSE(run_tune_cell(subject, config, {"m", "d", method, 30.0}, pool,
                               [](const Progress&) { return false; }));
  }
  config.q_high = 1e-4;
  EXPECT_NE(refusal_of([&] {
              run_tune_cell(subject, config, {"m", "d", "itgis", 1.0}, pool);
            }).find("no token"),
            std::string::npos);
  EXPECT_THROW((TuneConfig{.models = {"m"}, .dists = {"d"}, .methods = {"mc"}}.validate()), InputError);
  EXPECT_THROW((TuneConfig{.models = {"m"}, .dists = {"d"}, .grid = {-1.0}}.validate()), InputError);
}

TEST(Tune, ASearchContinuesFromItsFile) {
  const auto folder = std::filesystem::temp_directory_path() / fmt::format("deeptail-tune-{}", ::getpid());
  std::filesystem::create_directories(folder);
  add_data_folder(DEEPTAIL_SOURCE);
  const std::string out = folder / "results.jsonl";
  TuneConfig config{.models = {"dt-1l"},
                    .dists = {"caps"},
                    .methods = {"itgis"},
                    .grid = {1.0, 2.0, 5.0},
                    .targets_per_pair = 1,
                    .samples = 256};
  ThreadPool pool(2);
  ThreadPool one(1);
  const auto first_cell = [](const Progress& p) { return p.done == 0; };
  EXPECT_EQ(run_tune_search(config, out, one, first_cell).size(), 1u);
  std::vector<std::uint64_t> done;  // as it was told
  std::atomic<int> asking = 0;
  const TuneResults results = run_tune_search(config, out, pool, [&](const Progress& p) {
    EXPECT_EQ(++asking, 1);  // however many threads there are
    EXPECT_EQ(p.before, 1u);
    EXPECT_EQ(p.total, 3u);
    if (done.empty() || done.back() != p.done) done.push_back(p.done);
    --asking;
    return true;
  });
  EXPECT_EQ(done, (std::vector<std::uint64_t>{1, 2, 3}));
  const TuneResults at_once = run_tune_search(config, "", pool);
  ASSERT_EQ(results.size(), 3u);
  for (const auto& [cell, result] : at_once) EXPECT_EQ(results.at(cell).loss, result.loss);

  const std::string table = folder / "table.json";
  update_temperatures(table, results);
  update_temperatures(table, {{{"m", "d", "mhis", 3.0}, {.loss = 1.0, .targets = 2}}});
  EXPECT_EQ(read_temperatures(table).size(), 2u);  // what the table had about others stays
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace deeptail
