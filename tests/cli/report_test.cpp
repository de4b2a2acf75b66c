// deeptail report, run as a user runs it. What the page does in a browser: tests/browser.
#include "cli/run_binary.h"

namespace deeptail {
namespace {

namespace fs = std::filesystem;

class ReportCommand : public CliTest {
 protected:
  const std::string run_folder_ = std::string(DEEPTAIL_TEST_DATA) + "/report/run";
};

TEST_F(ReportCommand, WritesOnePageAndTables) {
  const Outcome outcome =
      run("report " + run_folder_ + " --out " + path("report.html") + " --tables " + path("tables"));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("72 of 72 estimates, 6 settings, 2 models, 2 distributions"), std::string::npos)
      << outcome.out;
  const std::string page = read(path("report.html"));
  EXPECT_LT(page.size(), 2500000u);
  EXPECT_EQ(page.find("@DEEPTAIL_DATA@"), std::string::npos);
  EXPECT_EQ(page.find(" src=\"http"), std::string::npos);
  for (const char* profile : {"benchmarking", "oversight", "stress", "audit"})
    for (const char* form : {".csv", ".md", ".tex"})
      EXPECT_TRUE(fs::exists(path("tables/loss-" + std::string(profile) + form))) << profile << form;
  EXPECT_EQ(read(path("tables/scores.csv")).substr(0, 10), "model,dist");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), {}), 3) << "page, tables and what stderr said";
}

TEST_F(ReportCommand, APackedRunGivesTheSameTablesAndFigures) {
  ASSERT_EQ(run("bench export " + run_folder_ + " --packed " + path("run.gz")).code, 0);
  const auto report = [&](const std::string& from, const std::string& name) {
    const Outcome outcome = run("report " + from + " --quiet --out " + path("page.html") + " --tables " +
                                path(name) + " --figures " + path(name));
    ASSERT_EQ(outcome.code, 0) << outcome.err;
  };
  report(run_folder_, "folder");
  report(path("run.gz"), "packed");
  std::size_t figures = 0;
  for (const auto& entry : fs::directory_iterator(path("folder"))) {
    const std::string name = entry.path().filename().string();
    EXPECT_EQ(read(path("folder/" + name)), read(path("packed/" + name))) << name;
    figures += entry.path().extension() == ".svg";
  }
  EXPECT_EQ(figures, 10u);
  refused("report " + path("run.gz") + " --out " + path("run.gz"), "this command reads it");
  refused("bench export " + path("run.gz") + " --packed " + path("run.gz"), "this command reads it");
  refused("report " + run_folder_ + " " + path("run.gz") + " --compare --figures " + path("f"), "--figures");
}

TEST_F(ReportCommand, AnUnfinishedRunIsShownAsFarAsItGoes) {
  fs::copy(run_folder_, path("run"));
  const std::string shard = read(path("run/shard-0.jsonl"));
  std::size_t end = 0;
  for (int line = 0; line < 41; ++line) end = shard.find('\n', end) + 1;  // 20 estimates and a data line
  write("run/shard-0.jsonl", shard.substr(0, end));
  const Outcome outcome = run("report " + path("run") + " --out " + path("report.html"));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("20 of 72 estimates"), std::string::npos) << outcome.out;
  const Outcome complete = run("report " + path("run") + " --complete --out " + path("report.html"));
  ASSERT_EQ(complete.code, 0) << complete.err;
  EXPECT_NE(complete.out.find("18 of 72 estimates"), std::string::npos) << complete.out;
}

TEST_F(ReportCommand, ScoresAgainstTheCountsOfAFolder) {
  const std::string truth = std::string(DEEPTAIL_SOURCE) + "/truth";
  const std::string command = "report " + run_folder_ + " --out " + path("report.html") + " --tables ";
  ASSERT_EQ(run(command + path("own")).code, 0);
  const Outcome outcome = run(command + path("present") + " --truth " + truth);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(read(path("own/scores.csv")), read(path("present/scores.csv")));
  refused(command + path("none") + " --truth " + path("nowhere"), "dt-1l-hex.json");
  EXPECT_FALSE(fs::exists(path("none")));
}

TEST_F(ReportCommand, ComparesTwoRuns) {
  fs::copy(run_folder_, path("b"));
  const std::string shard = read(path("b/shard-0.jsonl"));
  std::size_t end = 0;
  for (int line = 0; line < 40; ++line) end = shard.find('\n', end) + 1;  // 20 estimates
  write("b/shard-0.jsonl", shard.substr(0, end));
  const std::string both = "report " + run_folder_ + " " + path("b") + " --out " + path("c.html");
  const Outcome outcome = run(both + " --compare");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("20 estimates in both runs, 52 in the first alone, 0 in the second alone"),
            std::string::npos)
      << outcome.out;
  EXPECT_GT(read(path("c.html")).size(), 500000u);
  fs::remove(path("c.html"));
  refused(both, "report them one by one");
  refused("report " + run_folder_ + " --compare --out " + path("c.html"),
          "expected two run folders, found 1");
  refused(both + " " + run_folder_ + " --compare", "found 3");
  refused(both + " --compare --tables " + path("tables"), "--tables");
  std::string header = read(path("b/run.json"));
  const std::size_t hash = header.find("\"sha256\"", header.find("\"models\"")) + 11;
  header[hash] = header[hash] == '0' ? '1' : '0';
  write("b/run.json", header);
  refused(both + " --compare", "only runs of the same models can be compared");
  EXPECT_FALSE(fs::exists(path("c.html")));
}

TEST_F(ReportCommand, RefusesBadRunsAndPlaces) {
  const std::string out = " --out " + path("report.html");
  refused("report " + path("nowhere") + out, "run.json");
  fs::create_directory(path("empty"));
  refused("report " + path("empty") + out, "run.json");
  fs::copy(run_folder_, path("run"));
  std::string shard = read(path("run/shard-0.jsonl"));
  write("run/shard-0.jsonl", "");
  refused("report " + path("run") + out, "no estimates yet");
  shard[shard.find("log10_p") + 10] = '9';
  write("run/shard-0.jsonl", shard);
  refused("report " + path("run") + out, "checksum");
  EXPECT_FALSE(fs::exists(path("report.html")));
  refused("report " + run_folder_ + " --out " + path("missing/report.html"), "missing");
}

}  // namespace
}  // namespace deeptail
