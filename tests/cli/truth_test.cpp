// deeptail truth, run as a user runs it, also when it is killed.
#include <fcntl.h>
#include <signal.h>

#include <chrono>
#include <thread>

#include "cli/run_binary.h"

namespace deeptail {
namespace {

namespace fs = std::filesystem;

class TruthCommand : public CliTest {
 protected:
  std::string count(const std::string& name, const std::string& rest) const {
    return "truth --model dt-1l --dist caps --out '" + path(name) + "' " + rest;
  }

  // Starts counting, sends the signal once a partial file is there, and waits. The exit code, or minus the
  // signal.
  int count_and_signal(const std::string& name, const std::string& samples, int signal) const {
    const std::string out = path(name);
    const pid_t child = ::fork();
    if (child == 0) {
      const int null = ::open("/dev/null", O_WRONLY);
      ::dup2(null, 1), ::dup2(null, 2);
      if (::chdir(DEEPTAIL_SOURCE) != 0) ::_exit(99);
      ::execl(DEEPTAIL_BINARY, DEEPTAIL_BINARY, "truth", "--model", "dt-1l", "--dist", "caps", "--samples",
              samples.c_str(), "--out", out.c_str(), nullptr);
      ::_exit(99);
    }
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    const auto waiting = [&] { return signal == SIGKILL ? !fs::exists(out + ".partial") : false; };
    std::this_thread::sleep_for(std::chrono::milliseconds(1500));
    while (waiting() && std::chrono::steady_clock::now() < deadline)
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    ::kill(child, signal);
    int status = 0;
    ::waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }

  Json counts_of(const std::string& name) const { return json("truth show '" + path(name) + "'"); }
};

TEST_F(TruthCommand, ShowKeepsTheContract) {
  const auto shown = json("truth show truth/dt-1l-hex.json");
  EXPECT_EQ(shown.size(), 2u);
  EXPECT_EQ(shown.at("samples"), 4294967296);
  EXPECT_EQ(shown.at("counts").at("69"), 876220193);
  const Outcome text = run("truth show truth/dt-1l-hex.json");
  EXPECT_NE(text.out.find("1e-07 to 1e-06"), std::string::npos) << text.out;
  EXPECT_NE(text.out.find("\"e\""), std::string::npos) << text.out;
}

TEST_F(TruthCommand, ShippedCountsHaveNames) {
  EXPECT_EQ(json("truth show dt-1l-hex"), json("truth show truth/dt-1l-hex.json"));
  EXPECT_EQ(run("truth show dt-1l-hex.json").code, 0);
  ASSERT_EQ(
      run("truth --model dt-1l --dist hex --seed 9 --samples 2000 --quiet --out '" + path("a") + "'").code,
      0);
  EXPECT_GT(json("truth compare '" + path("a") + "' dt-1l-hex").at("p_value").get<double>(), 1e-6);
  refused("truth show dt-1l-nothing", "dt-1l-nothing: no such file, and none of this name in");
}

TEST_F(TruthCommand, CountsEventsOnSampledTexts) {
  const std::string events =
      write("events.jsonl",
            "{\"contains\": \"a\", \"within\": 4}\n{\"tokens_any\": [69], \"within\": 1}\n"
            "{\"judge\": \"while read -r l; do echo ${#l}; done\", \"within\": 2, \"threshold\": 1}\n");
  const auto count = [&](const std::string& name, const std::string& rest) {
    return run("truth --model dt-1l --dist hex --events '" + events + "' --temperature 0.9 --quiet --out '" +
               path(name) + "' " + rest);
  };
  ASSERT_EQ(count("all.json", "--samples 300").code, 0);
  ASSERT_EQ(count("a.json", "--samples 100").code, 0);
  ASSERT_EQ(count("b.json", "--samples 200 --first 100").code, 0);
  ASSERT_EQ(
      run("truth merge '" + path("a.json") + "' '" + path("b.json") + "' --out '" + path("c.json") + "'")
          .code,
      0);
  EXPECT_EQ(read(path("c.json")), read(path("all.json")));
  EXPECT_NE(count("all.json", "--samples 300").out.find("already counted"), std::string::npos);
  EXPECT_EQ(count("all.json", "--samples 301").code, 2);
  const auto shown = json("truth show '" + path("c.json") + "'");
  EXPECT_EQ(shown.at("samples"), 300);
  EXPECT_EQ(shown.at("events").size(), 3u);
  EXPECT_EQ(shown.at("events")[2].at("count"), 300);
  EXPECT_EQ(shown.at("sampling").at("temperature"), 0.9);
  const Outcome text = run("truth show '" + path("c.json") + "'");
  EXPECT_NE(text.out.find("contains \"a\" within 4"), std::string::npos) << text.out;
  // One event by flags, on the same texts.
  ASSERT_EQ(run("truth --model dt-1l --dist hex --contains a --within 4 --temperature 0.9 --quiet --samples "
                "300 --out '" +
                path("one.json") + "'")
                .code,
            0);
  EXPECT_EQ(json("truth show '" + path("one.json") + "'").at("events")[0], shown.at("events")[0]);
  refused("truth merge '" + path("one.json") + "' '" + path("a.json") + "' --out '" + path("d.json") + "'",
          "different events");
  // After one prompt, which no file holds.
  ASSERT_EQ(run("truth --model dt-1l --prompt 'The' --contains a --within 4 --quiet --samples 50 --out '" +
                path("prompt.json") + "'")
                .code,
            0);
  EXPECT_EQ(json("truth show '" + path("prompt.json") + "'").at("samples"), 50);
}

TEST_F(TruthCommand, CountsMergesAndCompares) {
  ASSERT_EQ(run(count("all.json", "--samples 3000 --quiet")).code, 0);
  ASSERT_EQ(run(count("a.json", "--samples 1e3 --quiet")).code, 0);
  ASSERT_EQ(run(count("b.json", "--samples 2000 --first 1000 --quiet")).code, 0);
  const std::string merge =
      "truth merge '" + path("a.json") + "' '" + path("b.json") + "' --out '" + path("c.json") + "'";
  ASSERT_EQ(run(merge).code, 0);
  EXPECT_EQ(read(path("c.json")), read(path("all.json")));
  refused("truth merge '" + path("a.json") + "' '" + path("all.json") + "' --out '" + path("d.json") + "'",
          "overlaps");
  refused("truth merge '" + path("a.json") + "' truth/dt-1l-hex.json --out '" + path("d.json") + "'",
          "different distributions");
  EXPECT_FALSE(fs::exists(path("d.json")));

  const auto compared = json("truth compare '" + path("all.json") + "' truth/dt-1l-caps.json");
  EXPECT_LT(compared.at("max_z").get<double>(), 5.0);
  EXPECT_GT(compared.at("p_value").get<double>(), 1e-4);
  EXPECT_GT(compared.at("unseen").size(), 100u);
  EXPECT_NE(
      run("truth compare '" + path("all.json") + "' truth/dt-1l-caps.json").out.find("never in the first"),
      std::string::npos);
}

TEST_F(TruthCommand, FinishedIsLeftAloneAndOthersAreRefused) {
  ASSERT_EQ(run(count("t.json", "--samples 2^9 --quiet")).code, 0);
  const Outcome again = run(count("t.json", "--samples 2^9 --quiet"));
  EXPECT_EQ(again.code, 0);
  EXPECT_NE(again.out.find("already counted"), std::string::npos);
  refused(count("t.json", "--samples 2^10"), "holds another count");
  refused(count("t.json", "--samples 2^9 --seed 2"), "holds another count");
}

TEST_F(TruthCommand, BudgetOfSecondsLeavesAPartialFile) {
  const Outcome outcome = run(count("t.json", "--samples 2^40 --seconds 0.5 --quiet"));
  EXPECT_EQ(outcome.code, 4) << outcome.err;
  EXPECT_NE(outcome.err.find("the same command continues"), std::string::npos);
  EXPECT_GT(counts_of("t.json.partial").at("samples"), 0);
  EXPECT_FALSE(fs::exists(path("t.json")));
}

TEST_F(TruthCommand, InterruptSavesAndExitsWith3) {
  EXPECT_EQ(count_and_signal("t.json", "2^40", SIGINT), 3);
  const auto first = counts_of("t.json.partial").at("samples").get<std::uint64_t>();
  EXPECT_EQ(count_and_signal("t.json", "2^40", SIGTERM), 3);
  EXPECT_GT(counts_of("t.json.partial").at("samples").get<std::uint64_t>(), first);
}

// Killed without warning once progress has been saved: the rest is counted, and nothing twice.
TEST_F(TruthCommand, KilledAndContinuedGivesTheSameCounts) {
  ASSERT_EQ(count_and_signal("t.json", "2^40", SIGKILL), -SIGKILL);
  ASSERT_TRUE(fs::exists(path("t.json.partial")));
  const auto saved = counts_of("t.json.partial").at("samples").get<std::uint64_t>();
  const std::string samples = std::to_string(saved + 5000);
  const Outcome rest = run(count("t.json", "--samples " + samples));
  ASSERT_EQ(rest.code, 0) << rest.err;
  EXPECT_NE(rest.err.find("continuing after " + std::to_string(saved) + " inputs"), std::string::npos)
      << rest.err;
  ASSERT_EQ(run(count("undisturbed.json", "--quiet --samples " + samples)).code, 0);
  EXPECT_EQ(read(path("t.json")), read(path("undisturbed.json")));
  EXPECT_FALSE(fs::exists(path("t.json.partial")));
}

TEST_F(TruthCommand, BadFlagsAndFiles) {
  refused("truth --model dt-1l --dist caps --samples 10", "--out is required");
  refused(count("t.json", "--samples ten"), "--samples: expected a whole number");
  refused("truth --model nowhere --dist caps --samples 10 --out x", "model nowhere");
  refused("truth --model dt-1l --dist nowhere --samples 10 --out x", "distribution nowhere");
  refused("truth --model '" + std::string(DEEPTAIL_TEST_DATA) +
              "/model/rand-1l-64' --dist hex --samples 10 --out x",
          "but model rand-1l-64");
  refused("truth --model dt-1l --dist caps --samples 10 --out '" + path("no/such/file") + "' --quiet",
          "cannot create");
  refused("truth show '" + write("bad.json", "{}") + "'", "bad.json: key \"format\" is missing");
  refused("truth import '" + std::string(DEEPTAIL_TEST_DATA) +
              "/tensors/torch-2/single_int64.pt' --model-name m --dist-name d --out x",
          "token id 0 has the count -1");
}

// Looking for each of so many names among those before it would take minutes.
TEST_F(TruthCommand, ManyTokensAreQuick) {
  constexpr std::size_t kTokens = 200000;
  std::string npy("\x93NUMPY\x01\x00\x76\x00", 10);
  std::string header = "{'descr': '|u1', 'fortran_order': False, 'shape': (200000,), }";
  npy += header + std::string(0x76 - header.size() - 1, ' ') + "\n" + std::string(kTokens, '\1');
  const auto start = std::chrono::steady_clock::now();
  const Outcome imported = run("truth import '" + write("n.npy", npy) +
                               "' --model-name m --dist-name d --out '" + path("t.json") + "'");
  EXPECT_EQ(imported.code, 0) << imported.err;
  EXPECT_EQ(json("truth show '" + path("t.json") + "'").at("counts").size(), kTokens);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(60));
}

TEST_F(TruthCommand, InputsAreKeptAndMerged) {
  ASSERT_EQ(run(count("a.json", "--samples 500 --keep-hits 3")).code, 0);
  ASSERT_EQ(run(count("b.json", "--samples 500 --first 500 --keep-hits 3")).code, 0);
  ASSERT_EQ(run(count("whole.json", "--samples 1000 --keep-hits 3")).code, 0);
  const std::string merge = "truth merge '" + path("a.json") + "' '" + path("b.json") + "' ";
  ASSERT_EQ(run(merge + "--out '" + path("c.json") + "'").code, 0);
  EXPECT_EQ(read(path("c.json.hits")), read(path("whole.json.hits")));
  EXPECT_EQ(read(path("c.json")), read(path("whole.json")));
  ASSERT_EQ(run(count("d.json", "--samples 500 --first 1000")).code, 0);
  const Outcome some = run(merge + "'" + path("d.json") + "' --out '" + path("e.json") + "'");
  EXPECT_EQ(some.code, 0);
  EXPECT_NE(some.err.find("they are not merged"), std::string::npos) << some.err;
  EXPECT_FALSE(fs::exists(path("e.json.hits")));
  const Outcome other = run(count("a.json", "--samples 500 --keep-hits 4"));
  EXPECT_EQ(other.code, 2);
  EXPECT_NE(other.err.find("keeps 3 inputs of each token, not 4"), std::string::npos) << other.err;
}

}  // namespace
}  // namespace deeptail
