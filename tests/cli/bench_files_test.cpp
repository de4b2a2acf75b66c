// Files of runs, models and counts that change, are in the way, or are about to be written over.
#include <fcntl.h>
#include <signal.h>

#include <chrono>
#include <thread>

#include "cli/run_binary.h"
#include "core/file_lock.h"

namespace deeptail {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

class BenchFiles : public CliTest {
 protected:
  // A suite of mc on dt-1l. head: before its first table.
  std::string suite(const std::string& targets, const std::string& budget,
                    const std::string& head = "") const {
    return write("s.toml", "name = \"s\"\nmodels = [\"dt-1l\"]\ndistributions = [\"hex\"]\n" + head +
                               "[targets]\n" + targets +
                               "\n[[methods]]\nmethod = \"mc\"\nbudget = " + budget + "\n");
  }
  std::string bench() const {
    return "bench run '" + path("s.toml") + "' --out '" + path("run") + "' --quiet";
  }
  pid_t start() const {
    const std::string suite = path("s.toml"), folder = path("run"), err = path("stderr");
    const pid_t child = ::fork();
    if (child == 0) {
      ::dup2(::open("/dev/null", O_WRONLY), 1);
      ::dup2(::open(err.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0666), 2);
      if (::chdir(DEEPTAIL_SOURCE) != 0) ::_exit(99);
      ::execl(DEEPTAIL_BINARY, DEEPTAIL_BINARY, "bench", "run", suite.c_str(), "--out", folder.c_str(),
              "--threads", "1", "--quiet", nullptr);
      ::_exit(99);
    }
    return child;
  }
  // The exit code, or minus the signal.
  static int wait_for(pid_t child) {
    int status = 0;
    ::waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }
  static bool soon(const std::function<bool()>& done) {
    const auto deadline = std::chrono::steady_clock::now() + 20s;
    while (!done() && std::chrono::steady_clock::now() < deadline) std::this_thread::sleep_for(2ms);
    return done();
  }
  std::size_t committed() const {
    const std::string text = read(path("run/shard-1of1.jsonl"));
    std::size_t n = 0;
    for (std::size_t at = 0; (at = text.find("{\"commit\":", at)) != std::string::npos; ++at) ++n;
    return n;
  }
  // dt-1l under a folder of the test's own.
  void copy_model(const std::string& name) const {
    fs::create_directories(path("models"));
    fs::copy(std::string(DEEPTAIL_SOURCE) + "/models/" + name, path("models/" + name));
    fs::copy(std::string(DEEPTAIL_SOURCE) + "/models/tokenizer.json", path("models/tokenizer.json"));
  }
};

TEST_F(BenchFiles, ExportWhileOthersCommit) {
  suite("band = [1e-6, 1e-3]\ncount = 10", "64", "replicas = 300\n");
  const pid_t child = start();
  EXPECT_TRUE(soon([&] { return committed() > 0; }));
  for (int i = 0; i < 10; ++i) {
    const Outcome outcome = run("bench export '" + path("run") + "' --csv '" + path("a.csv") + "' --jsonl '" +
                                path("a.jsonl") + "'");
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    const std::string csv = read(path("a.csv")), lines = read(path("a.jsonl"));
    EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), std::count(lines.begin(), lines.end(), '\n') + 1);
  }
  ::kill(child, SIGTERM);
  const int code = wait_for(child);
  EXPECT_TRUE(code == 3 || code == 0) << code;
}

// A suite of many rows takes a while to read.
TEST_F(BenchFiles, SignalsBeforeTheRunExitWith3) {
  std::string text = read(suite("band = [1e-6, 1e-3]\ncount = 2", "100"));
  for (int i = 0; i < 6000; ++i)
    text += "[[methods]]\nmethod = \"mc\"\nvariant = \"v" + std::to_string(i) + "\"\n";
  write("s.toml", text);
  for (const int signal : {SIGUSR1, SIGTERM, SIGINT}) {
    const pid_t child = start();
    // As soon as the program has said anything about SIGTERM to the kernel.
    EXPECT_TRUE(soon([&] {
      std::ifstream status("/proc/" + std::to_string(child) + "/status");
      for (std::string line; std::getline(status, line);)
        if (line.starts_with("SigCgt:"))
          return (std::stoull(line.substr(7), nullptr, 16) >> (SIGTERM - 1) & 1) != 0;
      return false;
    }));
    std::this_thread::sleep_for(5ms);
    ::kill(child, signal);
    EXPECT_EQ(wait_for(child), 3) << signal;
  }
}

TEST_F(BenchFiles, OutputsAreNotInputs) {
  suite("band = [1e-6, 1e-3]\ncount = 1", "100");
  ASSERT_EQ(run(bench()).code, 0);
  const std::string header = read(path("run/run.json")), shard = read(path("run/shard-1of1.jsonl"));
  fs::create_symlink("run/run.json", path("link.csv"));
  fs::create_hard_link(path("run/shard-1of1.jsonl"), path("hard.csv"));
  const std::string export_run = "bench export '" + path("run") + "' --csv '";
  for (const char* name : {"run/shard-1of1.jsonl", "run/run.json", "run/claims.lock", "link.csv", "hard.csv"})
    refused(export_run + path(name) + "'", "cannot write: this command reads it");
  refused(export_run + path("run/shard-new.jsonl") + "'",
          "cannot write: a file of this name belongs to the run");
  refused("bench export '" + path("run") + "' --jsonl '" + path("run/run.json") + "'",
          "this command reads it");
  refused("report '" + path("run") + "' --out '" + path("run/run.json") + "'", "this command reads it");
  EXPECT_EQ(run(export_run + path("run/mine.csv") + "'").code, 0);  // a name that is free
  EXPECT_EQ(run(export_run + path("run/mine.csv") + "'").code, 0);
  EXPECT_EQ(read(path("run/run.json")), header);
  EXPECT_EQ(read(path("run/shard-1of1.jsonl")), shard);
}

TEST_F(BenchFiles, ModelsAndCountsAreNotWrittenOver) {
  copy_model("dt-1l");
  const std::string model = path("models/dt-1l"), weights = model + "/model.safetensors",
                    before = read(weights);
  const std::string subject = "--model '" + model + "' --dist hex ";
  refused("activations capture " + subject + "--count 600 --out '" + weights + "'", "this command reads it");
  refused("activations capture " + subject + "--count 600 --out '" + path("a.npy") + "' --unembed-out '" +
              weights + "'",
          "this command reads it");
  refused("truth " + subject + "--samples 100 --out '" + model + "/config.json'", "this command reads it");
  refused("truth " + subject + "--samples 100 --out '" + path("models/tokenizer.json") + "'",
          "this command reads it");
  EXPECT_EQ(read(weights), before);
  for (const char* part : {"0", "100"})
    ASSERT_EQ(run("truth --model dt-1l --dist hex --quiet --samples 100 --first " + std::string(part) +
                  " --out '" + path(part) + "'")
                  .code,
              0);
  refused("truth merge '" + path("0") + "' '" + path("100") + "' --out '" + path("100") + "'",
          "this command reads it");
  refused("bench tune --models '" + model + "' --dists hex --out '" + weights + "'", "this command reads it");
}

// A model that is in use is not read again; the one that comes next is.
TEST_F(BenchFiles, WeightsThatChangeEndTheRun) {
  const std::string next = path("models/dt-2l"), weights = next + "/model.safetensors";
  copy_model("dt-2l");
  std::string other = read(weights);
  other[other.size() - 2] ^= 1;
  write("other", other);
  std::string text = read(suite("band = [1e-6, 1e-3]\ncount = 6", "\"2^12\""));
  text.replace(text.find("\"dt-1l\""), 7, "\"dt-1l\", \"" + next + "\"");
  write("s.toml", text);
  const pid_t child = start();
  EXPECT_TRUE(soon([&] { return committed() > 0; }));
  fs::rename(path("other"), weights);
  EXPECT_EQ(wait_for(child), 2);
  const std::string err = read(path("stderr"));
  EXPECT_NE(err.find("model dt-2l: has changed since the run began"), std::string::npos) << err;
  EXPECT_EQ(committed(), 6u);  // those of the first model are kept
}

TEST_F(BenchFiles, NamedTokensWithoutCounts) {
  Json dist = parse_json(read(std::string(DEEPTAIL_SOURCE) + "/distributions/hex.json"), "hex");
  dist["name"] = "mine";
  write("mine.json", json_text(dist));
  std::string text = read(suite("tokens = [69, \" the\"]", "200"));
  text.replace(text.find("\"hex\""), 5, "\"" + path("mine.json") + "\", \"hex\"");
  write("s.toml", text + "[[methods]]\nmethod = \"ga-amls\"\ncalibration = 300\nparticles = 20\nmoves = 4\n");
  const Outcome dry = run(bench() + " --dry-run");
  EXPECT_EQ(dry.code, 0) << dry.err;
  const Outcome outcome = run(bench());
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("all 8 items done"), std::string::npos) << outcome.out;
  ASSERT_EQ(run("bench export '" + path("run") + "' --csv '" + path("a.csv") + "' --jsonl '" +
                path("a.jsonl") + "'")
                .code,
            0);
  std::ifstream lines(path("a.jsonl"));
  std::size_t known = 0, unknown = 0;
  for (std::string line; std::getline(lines, line);) {
    const Json item = parse_json(line, "item");
    EXPECT_EQ(item.at("truth").is_null(), item.at("dist") == "mine");
    ++(item.at("truth").is_null() ? unknown : known);
  }
  EXPECT_EQ(known, 4u);
  EXPECT_EQ(unknown, 4u);
  EXPECT_NE(read(path("a.csv")).find(",dt-1l,mine,69,e,mc,mc,0,,,,"), std::string::npos)
      << read(path("a.csv"));
  EXPECT_EQ(parse_json(read(path("run/run.json")), "run").at("truths").size(), 1u);
}

TEST_F(BenchFiles, WhatAKilledStartLeftIsRemoved) {
  suite("band = [1e-6, 1e-3]\ncount = 1", "100");
  fs::create_directories(path("run"));
  write("run/run.json.tmp-123-0", "half");
  write("run/notes", "mine");
  ASSERT_EQ(run(bench()).code, 0);
  EXPECT_FALSE(fs::exists(path("run/run.json.tmp-123-0")));
  EXPECT_TRUE(fs::exists(path("run/notes")));
}

TEST_F(BenchFiles, TwoSearchesDoNotShareAFile) {
  const std::string out = path("tune.jsonl");
  const std::string tune =
      "bench tune --models dt-1l --dists caps --methods itgis --targets-per-pair 1 --samples 512 "
      "--temperatures 1 "
      "--quiet --out '" +
      out + "'";
  {
    const WorkLock other(out);
    refused(tune, "tune.jsonl: another process is at work on it");
  }
  EXPECT_EQ(run(tune).code, 0);
}

}  // namespace
}  // namespace deeptail
