// Standard streams and places that cannot be written.
#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>

#include "cli/run_binary.h"

namespace deeptail {
namespace {

namespace fs = std::filesystem;

class Streams : public CliTest {
 protected:
  std::string estimate(const std::string& rest) const {
    return "estimate --model dt-1l --dist caps --target 5 --method mc --budget 64 " + rest;
  }
};

TEST_F(Streams, ErrorsThatNobodyCanReadDoNotAbort) {
  const Outcome done = run(estimate("2>/dev/full"));
  EXPECT_EQ(done.code, 0);
  EXPECT_NE(done.out.find("Pr["), std::string::npos);
  EXPECT_EQ(run(estimate("--device none 2>/dev/full")).code, 2);
  EXPECT_EQ(run("estimate --nonsense 2>/dev/full").code, 2);
  EXPECT_EQ(
      run("truth --model dt-1l --dist caps --samples 64 --out '" + path("t.json") + "' 2>/dev/full").code, 0);
}

TEST_F(Streams, ClosedStreamsLeaveTheRunAlone) {
  write("suite.toml", R"(name = "s"
models = ["dt-1l"]
distributions = ["caps"]
budget = "2^12"
[targets]
band = [2e-7, 1e-5]
count = 1
[[methods]]
method = "mc"
)");
  const std::string bench = "bench run '" + path("suite.toml") + "' --out '" + path("run") + "'";
  ASSERT_EQ(run(bench + " <&- >&- 2>&-").code, 0);
  const Outcome again = run(bench);
  EXPECT_NE(again.out.find("done before"), std::string::npos) << again.out << again.err;
  for (const auto& entry : fs::directory_iterator(folder_ / "run")) {
    if (entry.path().extension() != ".jsonl") continue;
    EXPECT_EQ(read(entry.path()).find("items"), std::string::npos);
  }
}

TEST_F(Streams, AFullDiskIsToldAboutStandardOutput) {
  const std::string sentence = "deeptail: standard output: cannot write: No space left on device\n";
  for (const std::string& command : {estimate("--quiet --json"), std::string("dist list"),
                                     std::string("--help"), std::string("dist sample caps --count 10000")}) {
    const Outcome outcome = run(command + " >/dev/full");
    EXPECT_EQ(outcome.code, 2) << command;
    EXPECT_EQ(outcome.err, sentence) << command;
  }
  EXPECT_EQ(run("dist sample caps --count 10000 | head -1").err, "");
}

TEST_F(Streams, NamesThatNoFileCanHaveAreOneSentence) {
  const std::string name(300, 'x');
  refused("truth --model dt-1l --dist caps --samples 64 --out '" + path(name) + "'", "File name too long");
  refused("estimate --model dt-1l --dist caps --target 5 --temperature 1 --model '" + name + "'", "");
  refused("bench tune --models dt-1l --dists caps --out '" + path(name) + "'", "File name too long");
  refused("bench run suites/quick.toml --out '" + path(name) + "'", "File name too long");
  refused("model verify '" + path(name) + "'", "");
}

TEST_F(Streams, PipesAndLinksAreNotReplaced) {
  const auto count = [&](const std::string& name) {
    return "truth --model dt-1l --dist caps --samples 64 --quiet --out '" + path(name) + "'";
  };
  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
  refused(count("pipe"), "regular file");
  refused("report tests/data/report/run --quiet --out '" + path("pipe") + "'", "neither a regular file");
  EXPECT_TRUE(fs::is_fifo(path("pipe")));
  fs::create_directory(path("there"));
  fs::create_symlink("there/truth.json", path("link"));
  EXPECT_EQ(run(count("link")).code, 0);
  EXPECT_TRUE(fs::is_symlink(path("link")));
  EXPECT_TRUE(fs::is_regular_file(path("there/truth.json")));
  fs::create_symlink("loop", path("loop"));
  refused(count("loop"), "symbolic links");
}

// Also where there is nothing to save. The first bytes say that the program is at work.
TEST_F(Streams, ASignalEndsEveryCommandWithThree) {
  for (const int signal : {SIGINT, SIGTERM}) {
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    const pid_t child = ::fork();
    if (child == 0) {
      ::dup2(ends[1], 1), ::close(ends[0]), ::close(ends[1]);
      if (::chdir(DEEPTAIL_SOURCE) != 0) ::_exit(99);
      ::execl(DEEPTAIL_BINARY, DEEPTAIL_BINARY, "dist", "sample", "hex", "--count", "2^30", nullptr);
      ::_exit(99);
    }
    ::close(ends[1]);
    char byte = 0;
    EXPECT_EQ(::read(ends[0], &byte, 1), 1);
    ::kill(child, signal);
    int status = 0;
    ::waitpid(child, &status, 0);
    ::close(ends[0]);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 3) << status;
  }
}

TEST_F(Streams, EmptyValuesAreRefused) {
  const std::string estimate = "estimate --model dt-1l --dist hex --target 310";
  for (const char* flag : {"--budget", "--prior", "--kernel", "--calibration", "--normaliser", "--burn-in"})
    refused(estimate + " " + flag + " ''", "found an empty one");
  refused("loss x.csv --profile ''", "found an empty one");
  refused("report tests/data/report/run --truth ''", "found an empty one");
}

TEST_F(Streams, EmptyNamesAndOneNameForTwoFilesAreRefused) {
  const std::string subject = " --model dt-1l --dist caps", run_folder = "tests/data/report/run";
  for (const std::string& command :
       {"truth --samples 8" + subject, "activations capture --count 64" + subject,
        std::string("bench run suites/quick.toml"), std::string("bench tune"), "report " + run_folder,
        std::string("truth merge a b"), std::string("spb experiments")})
    refused(command + " --out ''", "--out: expected a value, found an empty one");
  refused("activations capture --count 64" + subject + " --out '" + path("a.npy") + "' --unembed-out '" +
              path("./a.npy") + "'",
          "the same file");
  refused("bench export " + run_folder + " --csv '" + path("a") + "' --jsonl '" + path("a") + "'",
          "the same file");
  refused("report " + run_folder + " --out '" + path("r.html") + "' --tables '" + write("e.txt", "x") + "'",
          "cannot create the folder");
  EXPECT_FALSE(fs::exists(path("r.html")));
  refused("truth --samples 8 --near-tie -5 --out x" + subject, "--near-tie -5: expected 0 or more");
}

// A limit on the size of files ends like a full disk, and temporary files are removed.
TEST_F(Streams, FilesThatMayNotGrowLeaveNothingBehind) {
  struct rlimit before {};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const struct rlimit small = {512, before.rlim_max};
  ::setrlimit(RLIMIT_FSIZE, &small);
  const Outcome outcome =
      run("truth --model dt-1l --dist caps --samples 2000 --quiet --out '" + path("t.json") + "'");
  ::setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.err.find("t.json: cannot write: File too large"), std::string::npos) << outcome.err;
  for (const auto& entry : fs::directory_iterator(folder_)) EXPECT_EQ(entry.path().filename(), "stderr");
}

}  // namespace
}  // namespace deeptail
