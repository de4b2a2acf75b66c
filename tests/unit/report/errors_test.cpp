// Errors of a run and their tables, against numbers worked out by hand.
#include <algorithm>
#include <cmath>

#include "deeptail/report.h"
#include "report/run_fixture.h"

namespace deeptail {
namespace {

// An estimate that is 10^log10_ratio times its truth, a count among 10^9.
RunItem off_by(TokenId target, std::uint64_t count, double log10_ratio, const std::string& method = "qld",
               const std::string& variant = "") {
  const double q = static_cast<double>(count) / 1e9;
  RunItem item = estimate(target, count, q * std::pow(10.0, log10_ratio), method, variant);
  item.truth_samples = 1'000'000'000;
  return item;
}

std::string table_named(const std::vector<TableFile>& files, const std::string& name) {
  const auto at =
      std::find_if(files.begin(), files.end(), [&](const TableFile& f) { return f.name == name; });
  EXPECT_NE(at, files.end()) << name;
  return at == files.end() ? "" : at->text;
}

// Six targets of qld, three of them rarer than 1e-7, one of those a zero; two of mc, both zeros.
Run made_up() {
  auto run = small_run();
  run.items = {off_by(1, 10, 2.0),
               off_by(2, 20, -INFINITY),
               off_by(3, 99, 1.0),
               off_by(4, 100, -0.2),
               off_by(5, 1000, 0.3),
               off_by(6, 5000, 0.5),
               off_by(1, 10, -INFINITY, "mc"),
               off_by(6, 5000, -INFINITY, "mc")};
  return run;
}

TEST(Errors, OfOneSetting) {
  ThreadPool pool(1);
  const Report report = make_report(made_up(), pool);
  ASSERT_EQ(report.errors.size(), 2u);
  const ErrorSummary& e = report.errors[0];
  EXPECT_EQ(report.variants[e.variant].name, "qld");
  EXPECT_EQ(e.targets, 6u);
  EXPECT_EQ(e.estimates, 6u);
  EXPECT_EQ(e.zeros, 1u);
  EXPECT_EQ(e.rare, 3u) << "100 of 10^9 is 1e-7, which is not below it";
  EXPECT_EQ(e.rare_zeros, 1u);
  EXPECT_EQ(e.too_high, 4u);
  EXPECT_EQ(e.within_2, 2u) << "10^0.3 is less than 2";
  // Of -0.2, 0.3, 0.5, 1, 2: the mean 0.72, squares of the differences 2.788 / 5.
  EXPECT_NEAR(e.median, 0.5, 1e-12);
  EXPECT_NEAR(e.mean, 0.72, 1e-12);
  EXPECT_NEAR(e.deviation, std::sqrt(2.788 / 5.0), 1e-12);
  EXPECT_NEAR(e.median_rare, 1.5, 1e-12) << "of 1 and 2";
  EXPECT_NEAR(e.median_common, 0.3, 1e-12);
  EXPECT_NEAR(e.lowest, -0.2, 1e-12);
  EXPECT_NEAR(e.highest, 2.0, 1e-12);
}

TEST(Errors, OfZerosAloneAndOfWhatCannotBeScored) {
  auto run = made_up();
  run.items.push_back(without_truth(off_by(7, 1, 0.0, "mc")));
  run.items.push_back(off_by(8, 0, 0.0, "mc"));
  ThreadPool pool(1);
  const ErrorSummary e = make_report(run, pool).errors[1];
  EXPECT_EQ(e.estimates, 2u);
  EXPECT_EQ(e.zeros, 2u);
  for (const double x : {e.median, e.mean, e.deviation, e.median_rare, e.lowest}) EXPECT_TRUE(std::isnan(x));
  for (RunItem& item : run.items) item = without_truth(item);
  EXPECT_TRUE(make_report(run, pool).errors.empty());
}

TEST(Errors, EverySettingAndModelHasARow) {
  auto run = made_up();
  run.header.models.push_back({.name = "n", .n_layers = 2});
  run.items.push_back(off_by(1, 10, 1.0, "qld", "qld/other"));
  run.items.push_back(off_by(1, 10, 1.0));
  run.items.back().model = "n";
  ThreadPool pool(1);
  const Report report = make_report(run, pool);
  std::vector<std::string> rows;
  for (const ErrorSummary& e : report.errors)
    rows.push_back(report.models[e.model] + " " + report.variants[e.variant].name);
  EXPECT_EQ(rows, (std::vector<std::string>{"m qld", "m qld/other", "m mc", "n qld"}));
}

// Target 1: both answer; 2: mc is zero; 3: mc has none. Two replicas of qld on target 1.
Run partly_answered() {
  auto run = small_run();
  run.items = {off_by(1, 1000, 0.3, "mc"), off_by(2, 1000, -INFINITY, "mc"),
               off_by(1, 1000, 0.4),       off_by(1, 1000, -0.4),
               off_by(2, 1000, 3.0),       off_by(3, 1000, 3.0)};
  run.items[3].replica = 1;
  return run;
}

TEST(Answered, LossesWithoutAShiftOfTargetsThatAllAnswer) {
  ThreadPool pool(1);
  const Report report = make_report(partly_answered(), pool);
  ASSERT_EQ(report.answered.size(), 1u);
  const AnsweredLosses& a = report.answered[0];
  EXPECT_EQ(a.targets, 1u);
  EXPECT_EQ(a.of_targets, 3u);
  ASSERT_EQ(a.variants.size(), 2u);
  EXPECT_EQ(report.variants[a.variants[0]].name, "qld");
  // At alpha 1.5 the loss of u q is 2 (sqrt u - 1)^2 / sqrt u, the same for u and 1/u.
  const auto symmetric = [](double log10_ratio) {
    const double root = std::pow(10.0, 0.5 * log10_ratio);
    return 2.0 * (root - 1.0) * (root - 1.0) / root;
  };
  EXPECT_NEAR(a.loss[0][kBenchmarking], symmetric(0.4), 1e-12);
  EXPECT_NEAR(a.loss[1][kBenchmarking], symmetric(0.3), 1e-12);
  EXPECT_NEAR(a.loss[1][kOversight], itakura_saito(1e-6, 1e-6 * std::pow(10.0, 0.3)), 1e-12);
}

TEST(Answered, MethodsThatAreMostlyZeroAreLeftOut) {
  ThreadPool pool(1);
  const Report report = make_report(made_up(), pool);
  ASSERT_EQ(report.answered.size(), 1u);
  ASSERT_EQ(report.answered[0].variants.size(), 1u);
  EXPECT_EQ(report.variants[report.answered[0].variants[0]].name, "qld");
  EXPECT_EQ(report.answered[0].targets, 5u);
  EXPECT_EQ(report.answered[0].of_targets, 6u);
}

TEST(ErrorTables, AsMarkdownCsvAndLatex) {
  ThreadPool pool(1);
  const std::vector<TableFile> files = report_tables(make_report(made_up(), pool));
  const std::string md = table_named(files, "errors.md"), csv = table_named(files, "errors.csv"),
                    tex = table_named(files, "errors.tex");
  EXPECT_NE(md.find("| m | qld | 6 | 1 | 1 of 3 | 80 % | 0.50 | 0.75 | 1.50 | 0.30 | 33 % |\n"),
            std::string::npos)
      << md;
  EXPECT_NE(md.find("| m | mc | 2 | 2 | 1 of 1 | - | - | - | - | - | 0 % |\n"), std::string::npos) << md;
  EXPECT_NE(csv.find("m,qld,qld,6,6,1,3,1,4,2,0.5,0.72,0.746726,1.5,0.3,-0.2,2\n"), std::string::npos) << csv;
  EXPECT_NE(tex.find("m & qld & 6 & 1 & 1 of 3 & 80\\,\\% & 0.50 &"), std::string::npos) << tex;
}

TEST(ErrorTables, LossesOfAnsweredTargets) {
  ThreadPool pool(1);
  const std::vector<TableFile> files = report_tables(make_report(partly_answered(), pool));
  const std::string md = table_named(files, "answered.md"), csv = table_named(files, "answered.csv");
  EXPECT_NE(
      md.find("### m: 1 of 3 targets\n\n| SPB | qld | mc |\n|---|---:|---:|\n| (1.5, 0) | 0.43 | 0.24 |\n"),
      std::string::npos)
      << md;
  EXPECT_NE(csv.find("\nm,qld,qld,1,3,0.4317"), std::string::npos) << csv;
}

}  // namespace
}  // namespace deeptail
