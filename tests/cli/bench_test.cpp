// deeptail bench, run as a user runs it: killed, continued, cut into shards, by several processes at once.
#include <fcntl.h>
#include <signal.h>

#include <chrono>
#include <map>
#include <random>
#include <thread>

#include "cli/run_binary.h"

namespace deeptail {
namespace {

namespace fs = std::filesystem;

// 14 items that take tens of milliseconds each.
constexpr const char* kSuite = R"(name = "tiny"
models = ["dt-1l"]
distributions = ["hex"]

[targets]
band = [1e-6, 1e-3]
count = 2

[[methods]]
method = "mc"
budget = [200, 300]

[[methods]]
method = "tokensplit"
budget = 1000
replicas = 2

[[methods]]
method = "gld"
calibration = 300

[[methods]]
method = "qld"
calibration = 300

[[methods]]
method = "ga-amls"
calibration = 300
particles = 20
moves = 4
prior = ["student_t", "gaussian"]
)";
constexpr std::size_t kItems = 14;

class BenchCommand : public CliTest {
 protected:
  BenchCommand() { write("tiny.toml", kSuite); }

  std::string bench(const std::string& out, const std::string& rest = "--quiet") const {
    return "bench run '" + path("tiny.toml") + "' --out '" + path(out) + "' " + rest;
  }
  pid_t start(const std::string& out, const std::string& threads = "2") const {
    const std::string suite = path("tiny.toml"), folder = path(out);
    const pid_t child = ::fork();
    if (child == 0) {
      const int null = ::open("/dev/null", O_WRONLY);
      ::dup2(null, 1), ::dup2(null, 2);
      if (::chdir(DEEPTAIL_SOURCE) != 0) ::_exit(99);
      ::execl(DEEPTAIL_BINARY, DEEPTAIL_BINARY, "bench", "run", suite.c_str(), "--out", folder.c_str(),
              "--threads", threads.c_str(), nullptr);
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
  std::size_t committed(const std::string& out) const {
    std::size_t n = 0;
    if (!fs::exists(path(out))) return 0;
    for (const auto& entry : fs::directory_iterator(path(out))) {
      const std::string text = read(entry.path());
      for (std::size_t at = 0; (at = text.find("{\"commit\":", at)) != std::string::npos; ++at) ++n;
    }
    return n;
  }

  // Every item without the times, by id.
  std::map<std::string, Json> items(const std::string& out) const {
    EXPECT_EQ(run("bench export '" + path(out) + "' --jsonl '" + path("all.jsonl") + "'").code, 0);
    std::map<std::string, Json> found;
    std::ifstream lines(path("all.jsonl"));
    for (std::string line; std::getline(lines, line);) {
      Json item = parse_json(line, "item");
      item.erase("seconds");
      item.at("estimate").at("cost").erase("seconds");
      found[item.at("item")] = item;
    }
    EXPECT_EQ(found.size(), kItems);
    return found;
  }
  const std::map<std::string, Json>& undisturbed() const {
    static const auto all = [&] {
      EXPECT_EQ(run(bench("undisturbed", "--quiet --threads 1")).code, 0);
      return items("undisturbed");
    }();
    return all;
  }
};

TEST_F(BenchCommand, FinishesSaysSoAndExports) {
  const Outcome first = run(bench("run"));
  EXPECT_EQ(first.code, 0) << first.err;
  EXPECT_NE(first.out.find("all 14 items done"), std::string::npos) << first.out;
  EXPECT_EQ(items("run"), undisturbed());
  const auto before = fs::last_write_time(path("run") + "/shard-1of1.jsonl");
  const Outcome again = run(bench("run"));
  EXPECT_EQ(again.code, 0);
  EXPECT_NE(again.out.find("all 14 items were done before, nothing to do"), std::string::npos) << again.out;
  EXPECT_EQ(fs::last_write_time(path("run") + "/shard-1of1.jsonl"), before);

  const auto header = parse_json(read(path("run") + "/run.json"), "run.json");
  EXPECT_EQ(header.at("schema"), 1);
  EXPECT_EQ(header.at("items"), kItems);
  EXPECT_EQ(header.at("suite").at("text"), kSuite);
  EXPECT_EQ(header.at("models").at(0).at("name"), "dt-1l");
  EXPECT_EQ(header.at("profiles").size(), 4u);

  ASSERT_EQ(run("bench export '" + path("run") + "' --csv '" + path("run.csv") + "'").code, 0);
  const std::string csv = read(path("run.csv"));
  EXPECT_TRUE(csv.starts_with("item,model,dist,target,")) << csv;
  EXPECT_NE(csv.find(",ga-amls,ga-amls/gaussian,0,"), std::string::npos) << csv;
}

// The numbers of an item are those of `deeptail estimate` with its seeds.
TEST_F(BenchCommand, ItemsAreEstimates) {
  const std::map<std::string, std::string> flags = {
      {"mc/300", "--budget 300"}, {"gld", "--calibration 300"}, {"tokensplit", "--budget 1000 --replicas 2"}};
  std::size_t compared = 0;
  for (const auto& [id, item] : undisturbed()) {
    const auto found = flags.find(item.at("variant"));
    if (found == flags.end()) continue;
    const Outcome outcome =
        run("estimate --json --model dt-1l --dist hex --target " + json_text(item.at("target").at(0)) +
            " --seed " + json_text(item.at("estimate").at("seed")) + " --calibration-seed " +
            json_text(item.at("calibration_seed")) + " --method " + item.at("method").get<std::string>() +
            " " + found->second);
    Json e = parse_json(outcome.out, "output");  // whatever the exit code: such budgets may be spent
    e.at("cost").erase("seconds");
    for (const char* key : {"command", "target_text"}) e.erase(key);  // a run has them elsewhere
    EXPECT_EQ(e, item.at("estimate"));
    ++compared;
  }
  EXPECT_EQ(compared, 6u);
}

TEST_F(BenchCommand, KilledTwentyTimesGivesTheSame) {
  const auto& expected = undisturbed();
  std::mt19937 random(1);
  std::size_t kills = 0;
  for (int attempt = 0; attempt < 20; ++attempt) {
    const pid_t child = start("killed");
    // From before the first item to after a few.
    std::this_thread::sleep_for(std::chrono::milliseconds(random() % 120));
    ::kill(child, SIGKILL);
    kills += wait_for(child) == -SIGKILL ? 1 : 0;
  }
  EXPECT_GE(kills, 5u);  // the others found all done
  ASSERT_EQ(run(bench("killed")).code, 0);
  EXPECT_EQ(items("killed"), expected);
  EXPECT_EQ(committed("killed"), kItems);
}

TEST_F(BenchCommand, ShardsAndThreadsGiveTheSame) {
  for (const std::string shard : {"2/3", "1/3", "3/3"}) {
    const Outcome outcome =
        run(bench("shards", "--quiet --threads " + shard.substr(0, 1) + " --shard " + shard));
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_NE(outcome.out.find("of shard " + shard + " done"), std::string::npos) << outcome.out;
  }
  EXPECT_EQ(items("shards"), undisturbed());
  EXPECT_EQ(committed("shards"), kItems);
  // Another number of shards goes on with what is there.
  ASSERT_EQ(run(bench("mixed", "--quiet --shard 1/3")).code, 0);
  ASSERT_EQ(run(bench("mixed", "--quiet --shard 2/2 --threads 7")).code, 0);
  ASSERT_EQ(run(bench("mixed")).code, 0);
  EXPECT_EQ(items("mixed"), undisturbed());
  EXPECT_EQ(committed("mixed"), kItems);
  refused(bench("x", "--shard 0/3"), "--shard 0/3: expected i/n with i from 1 to n");
  refused(bench("x", "--shard 4/3"), "--shard 4/3");
}

TEST_F(BenchCommand, TwoProcessesShareTheWork) {
  const pid_t a = start("both", "1"), b = start("both", "1");
  const int code_a = wait_for(a), code_b = wait_for(b);
  EXPECT_EQ(code_a, 0);
  EXPECT_EQ(code_b, 0);
  EXPECT_EQ(committed("both"), kItems);  // none twice
  EXPECT_EQ(items("both"), undisturbed());
}

TEST_F(BenchCommand, SignalsSaveAndExitWith3) {
  // One long item, so that the signal finds it in flight.
  std::string suite = kSuite;
  suite.replace(suite.find("[200, 300]"), 10, "\"2^40\"");
  write("tiny.toml", suite);
  for (const int signal : {SIGTERM, SIGUSR1, SIGINT}) {
    const std::string folder = "signal-" + std::to_string(signal);
    const pid_t child = start(folder);
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!fs::exists(path(folder) + "/shard-1of1.jsonl") && std::chrono::steady_clock::now() < deadline)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    ::kill(child, signal);
    EXPECT_EQ(wait_for(child), 3) << signal;
    EXPECT_EQ(committed(folder), 0u);
  }
}

TEST_F(BenchCommand, AnotherRunInTheFolderIsRefused) {
  ASSERT_EQ(run(bench("run", "--quiet --shard 1/7")).code, 0);
  const std::size_t before = committed("run");
  write("tiny.toml", std::string(kSuite) + "# another\n");
  refused(bench("run"), "holds a run with another suite (SHA-256)");
  EXPECT_EQ(committed("run"), before);
  write("tiny.toml", kSuite);
  fs::remove(path("run") + "/run.json");
  refused(bench("run"), "has shards, but no run.json");
  write("file", "x");
  refused(bench("file"), "cannot create the folder");
  refused(bench("file/run"), "cannot create the folder");
  refused("bench run none.toml --out '" + path("y") + "'", "none.toml: cannot open");
  refused("bench export '" + path("file") + "' --csv x", "expected a run's folder or a packed run");
}

TEST_F(BenchCommand, ChangedModelIsRefused) {
  fs::create_directories(path("home/models"));
  fs::copy(std::string(DEEPTAIL_SOURCE) + "/models/dt-1l", path("home/models/dt-1l"));
  fs::copy(std::string(DEEPTAIL_SOURCE) + "/models/tokenizer.json", path("home/models/tokenizer.json"));
  std::string weights = read(path("home/models/dt-1l/model.safetensors"));
  weights[weights.size() - 2] ^= 1;
  write("home/models/dt-1l/model.safetensors", weights);
  std::string suite = kSuite;
  suite.replace(suite.find("dt-1l"), 5, path("home/models/dt-1l"));
  write("tiny.toml", suite);
  refused(bench("run"), "counts of another model than dt-1l");
  EXPECT_FALSE(fs::exists(path("run")));
}

TEST_F(BenchCommand, AModelWithoutANameHasItsFoldersName) {
  const std::string source = std::string(DEEPTAIL_SOURCE) + "/";
  fs::create_directories(path("models"));
  fs::copy(source + "models/dt-1l", path("models/own"));
  fs::copy(source + "models/tokenizer.json", path("models/tokenizer.json"));
  Json config = parse_json(read(path("models/own/config.json")), "config");
  config.erase("model_name");
  write("models/own/config.json", json_text(config));
  std::string suite = kSuite;
  suite.replace(suite.find("dt-1l"), 5, path("models/own/"));
  suite.replace(suite.find("count = 2"), 9, "count = 2\ntruth = \"" + source + "truth/dt-1l-hex.json\"");
  write("tiny.toml", suite);
  ASSERT_EQ(run(bench("run", "--quiet --shard 1/14")).code, 0);
  EXPECT_EQ(parse_json(read(path("run/run.json")), "run").at("models").at(0).at("name"), "own");
}

// `ulimit -f` counts blocks of 512 bytes in sh.
TEST_F(BenchCommand, FullDiskKeepsWhatIsThere) {
  const std::string command = std::string("cd '") + DEEPTAIL_SOURCE + "' && (ulimit -f 32; '" +
                              DEEPTAIL_BINARY + "' " + bench("full") + ") >'" + path("stdout") + "' 2>'" +
                              path("stderr") + "'";
  const int status = std::system(("sh -c \"" + command + "\"").c_str());
  EXPECT_EQ(WEXITSTATUS(status), 2);
  EXPECT_NE(read(path("stderr")).find("what was committed before is safe"), std::string::npos)
      << read(path("stderr"));
  const std::size_t before = committed("full");
  EXPECT_GT(before, 0u);
  EXPECT_LT(before, kItems);
  ASSERT_EQ(run(bench("full")).code, 0);
  EXPECT_EQ(items("full"), undisturbed());
}

TEST_F(BenchCommand, BadSuitesSayFileLineAndKey) {
  const auto bad = [&](const std::string& from, const std::string& to, const std::string& part) {
    std::string suite = kSuite;
    ASSERT_NE(suite.find(from), std::string::npos) << from;
    suite.replace(suite.find(from), from.size(), to);
    write("tiny.toml", suite);
    refused(bench("bad"), "tiny.toml: line " + part);
    EXPECT_FALSE(fs::exists(path("bad")));
  };
  bad("name = \"tiny\"", "name = ", "1: not valid TOML");
  bad("name = \"tiny\"", "nome = \"tiny\"", "1: key \"name\" is missing");
  bad("count = 2", "count = 2\ncuont = 3",
      "8: targets.cuont: unknown key; expected band, count, seed, tokens, truth");
  bad("count = 2", "count = \"many\"", "7: targets.count: expected a whole number");
  bad("band = [1e-6, 1e-3]", "band = [1e-3, 1e-6]", "6: targets.band: expected the smaller");
  bad("band = [1e-6, 1e-3]", "band = [0, 1e-6]", "6: targets.band: expected a number above 0");
  bad("models = [\"dt-1l\"]", "models = \"dt-1l\"", "2: models: expected a list");
  bad("models = [\"dt-1l\"]", "models = [\"dt-1l\", \"dt-1l\"]", "2: models: \"dt-1l\" is there twice");
  bad("method = \"gld\"", "method = \"glad\"", "19: methods.method: method glad: expected one of");
  bad("moves = 4", "movs = 4",
      "30: methods.movs: method ga-amls has no setting \"movs\"; it has calibration, particles");
  bad("\"gaussian\"]", "\"normal\"]", "31: methods.prior: expected student_t");
  bad("budget = 1000", "budget = -5", "15: methods.budget: expected a whole number");
  bad("method = \"qld\"", "method = \"gld\"", "23: methods.method: two rows are called gld");
  bad("name = \"tiny\"", "name = \"tiny\"\nprofiles = [\"none\"]", "2: profiles: ");
}

}  // namespace
}  // namespace deeptail
