// deeptail bench tune, run as a user runs it.
#include <sys/resource.h>

#include "cli/run_binary.h"

namespace deeptail {
namespace {

class TuneCommand : public CliTest {
 protected:
  std::string tune(const std::string& rest) const {
    return "bench tune --models dt-1l --dists caps --methods itgis --targets-per-pair 1 --samples 512 "
           "--quiet " +
           rest;
  }
};

TEST_F(TuneCommand, TuneContinuesAndWritesTheTable) {
  const std::string out = path("results.jsonl"), table = path("temperatures.json");
  const auto first = run(tune("--temperatures 1,5 --out " + out));
  EXPECT_EQ(first.code, 0) << first.err;
  const std::string lines = read(out);
  EXPECT_EQ(std::count(lines.begin(), lines.end(), '\n'), 2);
  std::ofstream(out, std::ios::app) << "{\"model\": \"dt";  // as a killed run leaves it
  std::ofstream(table) << R"({"format": "deeptail-temperatures-1", "temperatures": [
    {"model": "m", "dist": "d", "method": "mhis", "temperature": 3, "loss": 1, "targets": 2, "zeros": 0}]})";
  const auto second = run(tune("--temperatures 1,5,2 --out " + out + " --table " + table));
  EXPECT_EQ(second.code, 0) << second.err;
  const auto rows = parse_json(read(table), "table").at("temperatures");
  ASSERT_EQ(rows.size(), 2u);  // what the table had about others stays
  EXPECT_EQ(rows.at(0).at("dist"), "caps");
  EXPECT_NE(second.out.find("dt-1l caps"), std::string::npos);
  // Finished: nothing is run again.
  const std::string before = read(out);
  EXPECT_EQ(run(tune("--temperatures 1,5,2 --out " + out)).code, 0);
  EXPECT_EQ(read(out), before);
}

TEST_F(TuneCommand, TuneKnowsAPathByTheNameInTheFile) {
  const std::string table = path("temperatures.json");
  std::filesystem::create_directory(path("mine"));
  std::filesystem::copy_file(std::string(DEEPTAIL_SOURCE) + "/distributions/caps.json",
                             path("mine/other.json"));
  const auto outcome =
      run("bench tune --models dt-1l --dists " + path("mine/other.json") +
          " --methods itgis --targets-per-pair 1 --samples 512 --quiet --temperatures 1 --table " + table);
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  const auto rows = parse_json(read(table), "table").at("temperatures");
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows.at(0).at("dist"), "caps");
}

TEST_F(TuneCommand, TuneTellsAFullDiskAndKeepsWhatIsNotItsOwn) {
  const std::string notes = write("notes", "no line of ours, and no end of line");
  refused(tune("--temperatures 1 --out " + notes),
          "holds no search for temperatures; choose another file (--out)");
  EXPECT_EQ(read(notes), "no line of ours, and no end of line");

  struct rlimit before {};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const struct rlimit small = {128, before.rlim_max};  // a line is longer, the sentence is not
  ::setrlimit(RLIMIT_FSIZE, &small);
  const Outcome outcome = run(tune("--temperatures 1 --out " + path("results")));
  ::setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.err.find("cannot write: File too large"), std::string::npos) << outcome.err;
  EXPECT_EQ(run(tune("--temperatures 1 --out " + path("results"))).code, 0);
}

TEST_F(TuneCommand, TuneRefusesNonsense) {
  refused(tune("--methods mc"), "only itgis and mhis have a temperature");
  refused("bench tune --models dt-9l --quiet", "dt-9l");
  const std::string other = tune("--temperatures 1 --table ");
  refused(other + path("."), "it is a folder");
  refused(other + "/nowhere/table.json", "cannot create");
  refused(other + write("notes", "{}\n"), "notes");
  refused(tune("--temperatures 1 --out a --table ./a"), "the same file");
  refused(tune("--temperatures 0"), "expected a positive number");
  refused(tune("--out /nowhere/results.jsonl --temperatures 1"), "/nowhere/results.jsonl");
}

TEST_F(TuneCommand, TuneRefusesCountsOfAnotherModel) {
  std::filesystem::create_directories(path("truth"));
  write("truth/dt-1l-caps.json", read(std::filesystem::path(DEEPTAIL_SOURCE) / "truth/dt-2l-caps.json"));
  ::setenv("DEEPTAIL_HOME", folder_.c_str(), 1);
  refused(tune("--temperatures 1"), "counts of another model than dt-1l");
  ::unsetenv("DEEPTAIL_HOME");
}

}  // namespace
}  // namespace deeptail
