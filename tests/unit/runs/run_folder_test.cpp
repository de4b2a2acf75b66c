#include "runs/run_folder.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>

#include "core/write_file.h"

namespace deeptail {
namespace {

namespace fs = std::filesystem;

RunItem example(std::uint64_t n) {
  return {.id = fmt::format("{:016x}", 0xabc000 + n),
          .model = "dt-1l",
          .dist = "hex",
          .target_text = "\n\"",
          .method = "mc",
          .variant = "mc",
          .target = {static_cast<TokenId>(700 + n)},
          .replica = n % 2,
          .truth_count = 123,
          .truth_samples = 1 << 20,
          .seconds = 0.25,
          .calibration_seed = 3};
}

std::string example_line(std::uint64_t n, double seconds = 1.5) {
  Estimate e{.method = "mc", .target = {7}, .log_p = std::log(1e-6), .log_low = -INFINITY, .log_high = -10.0};
  e.seed = ~std::uint64_t{0};
  e.cost = {.forward = 65536, .flops = 1e12, .forward_equivalents = 65536.0, .seconds = seconds};
  e.warnings = {"a warning"};
  return data_line(example(n), to_json(e));
}

RunHeader example_header() {
  return {.version = "0.1.0",
          .suite_name = "tiny",
          .suite_sha256 = std::string(64, 'a'),
          .suite_text = "name = \"tiny\"\n",
          .profiles = {"benchmarking"},
          .models = {{"dt-1l", std::string(64, 'b'), 1, 128, 4096}},
          .distributions = {{"hex", std::string(64, 'c')}},
          .truths = {{"dt-1l-hex", std::string(64, 'd')}},
          .items = 4,
          .created = "2025-01-01T00:00:00Z"};
}

class RunFolder : public ::testing::Test {
 protected:
  RunFolder() {
    std::string pattern = (fs::temp_directory_path() / "deeptail-run-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
    write_file(folder_ + "/run.json", to_json(example_header()));
  }
  ~RunFolder() override { fs::remove_all(folder_); }

  std::string shard(const std::string& name) const { return folder_ + "/shard-" + name + ".jsonl"; }
  void put(const std::string& name, const std::string& text) const {
    std::ofstream(shard(name), std::ios::binary) << text;
  }
  static std::string pair_of(std::uint64_t n, double seconds = 1.5) {
    return example_line(n, seconds) + "\n" + commit_line(example(n).id, example_line(n, seconds)) + "\n";
  }

  std::string folder_;
};

void expect_refused(const std::function<void()>& what, const std::string& part) {
  try {
    what();
    FAIL() << "not refused: " << part;
  } catch (const InputError& e) {
    EXPECT_NE(std::string(e.what()).find(part), std::string::npos) << e.what();
  }
}

TEST_F(RunFolder, WhatWasAppendedIsRead) {
  {
    ShardWriter a(folder_, "1of2"), b(folder_, "2of2");
    a.append(example(2).id, example_line(2));
    b.append(example(0).id, example_line(0));
    a.append(example(1).id, example_line(1));
  }
  const deeptail::Run run = read_run(folder_);
  EXPECT_EQ(run.torn, 0u);
  EXPECT_EQ(run.header.suite_text, "name = \"tiny\"\n");
  EXPECT_EQ(run.header.models, example_header().models);
  ASSERT_EQ(run.items.size(), 3u);
  const RunItem& item = run.items[1];
  EXPECT_EQ(item.id, example(1).id);
  EXPECT_EQ(item.target, std::vector<TokenId>{701});
  EXPECT_EQ(item.target_text, "\n\"");
  EXPECT_EQ(item.replica, 1u);
  EXPECT_EQ(item.truth_count, 123u);
  EXPECT_NEAR(item.log_p, std::log(1e-6), 1e-13);
  EXPECT_EQ(item.log_low, -INFINITY);
  EXPECT_NEAR(item.log_high, -10.0, 1e-13);
  EXPECT_EQ(item.seed, ~std::uint64_t{0});
  EXPECT_EQ(item.calibration_seed, 3u);
  EXPECT_EQ(item.cost.forward, 65536u);
  EXPECT_EQ(item.cost.seconds, 1.5);
  EXPECT_EQ(item.seconds, 0.25);
  EXPECT_EQ(item.status, "ok");
  EXPECT_EQ(item.warnings, std::vector<std::string>{"a warning"});
}

TEST_F(RunFolder, TornAtEveryByteLosesOnlyWhatWasNotCommitted) {
  const std::string first = pair_of(0), all = first + pair_of(1);
  for (std::size_t cut = 0; cut <= all.size(); ++cut) {
    const ShardScan scan = scan_shard(std::string_view(all).substr(0, cut), "shard");
    const std::size_t whole = cut == all.size() ? 2 : cut >= first.size() ? 1 : 0;
    ASSERT_EQ(scan.committed.size(), whole) << cut;
    EXPECT_EQ(scan.end, whole * first.size()) << cut;
    EXPECT_EQ(scan.torn, cut == scan.end ? 0u : 1u) << cut;
  }
}

TEST_F(RunFolder, ContinuesATornShard) {
  const std::string first = pair_of(0), second = pair_of(1);
  for (const std::size_t cut : {std::size_t{1}, second.size() / 2, second.size() - 1}) {
    put("a", first + second.substr(0, cut));
    EXPECT_EQ(read_run(folder_).torn, 1u);
    ShardWriter(folder_, "a").append(example(2).id, example_line(2));
    EXPECT_EQ(read_from(shard("a"), 0), first + pair_of(2));
  }
  put("a", first + std::string(100, '\0') + "\n\n");  // blocks that the disk never got
  EXPECT_EQ(read_run(folder_).items.size(), 1u);
}

TEST_F(RunFolder, DamageBeforeACommitRecordIsRefused) {
  const std::string all = pair_of(0) + pair_of(1);
  for (std::size_t at = 0; at < pair_of(0).size(); ++at) {
    std::string text = all;
    text[at] = text[at] == 'x' ? 'y' : 'x';
    if (all[at] != '\n') {
      EXPECT_THROW(scan_shard(text, "shard"), InputError) << at;
      continue;
    }
    // Two lines joined look like work that was cut off: then the item is estimated again.
    const ShardScan scan = scan_shard(text, "shard");
    EXPECT_LT(scan.committed.size(), 2u);
    EXPECT_GT(scan.torn, 0u);
  }
  put("a", "hello\n" + all);
  expect_refused([&] { read_run(folder_); }, "line 1: neither an item nor a commit record: hello");
}

TEST_F(RunFolder, OneItemTwice) {
  put("a", pair_of(0, 1.0));
  put("b", pair_of(0, 2.0));  // the same but for the time it took
  EXPECT_EQ(read_run(folder_).items.size(), 1u);
  const std::string other = example_line(0).replace(example_line(0).find("65536"), 5, "65537");
  put("b", other + "\n" + commit_line(example(0).id, other) + "\n");
  expect_refused([&] { read_run(folder_); }, "shard-b.jsonl line 1: two estimates of item");
}

TEST_F(RunFolder, BadLinesSayWhere) {
  const auto refused = [&](const std::string& from, const std::string& to, const std::string& part) {
    std::string line = example_line(0);
    ASSERT_NE(line.find(from), std::string::npos) << from;
    line.replace(line.find(from), from.size(), to);
    put("a", line + "\n" + commit_line(example(0).id, line) + "\n");
    expect_refused([&] { read_run(folder_); }, "shard-a.jsonl line 1: " + part);
  };
  refused("\"dist\":\"hex\",", "", "key \"dist\" is missing");
  refused("\"target\":[700]", "\"target\":[]", "key \"target\": expected at least one token id");
  refused("\"target\":[700]", "\"target\":[-1]", "key \"target[0]\": expected a token id");
  refused("\"count\":123", "\"count\":12300000", "key \"truth\": expected a count");
  refused("\"ci95\":[0.0,", "\"ci95\":[-1.0,", "key \"estimate\": expected probabilities");
  refused("\"log10_p\":", "\"log10_p\":null,\"x\":", "key \"estimate.log10_p\": expected a number");
}

// With a good checksum, as a program of one's own would write them.
TEST_F(RunFolder, ImpossibleValuesAreRefused) {
  const auto refused = [&](const std::string& key, const std::string& value, const std::string& part) {
    std::string line = example_line(0);
    const std::size_t at = line.find("\"" + key + "\":", line.find("\"estimate\":")) + key.size() + 3;
    line.replace(at, line.find_first_of(line[at] == '[' ? "]" : ",}", at) + (line[at] == '[' ? 1 : 0) - at,
                 value);
    put("a", line + "\n" + commit_line(example(0).id, line) + "\n");
    expect_refused([&] { read_run(folder_); }, "shard-a.jsonl line 1: key \"estimate" + part);
  };
  const std::string interval = "\": expected a probability and an interval of at most 1, its lower end first";
  refused("log10_p", "5", interval);
  refused("log10_p", "\"inf\"", interval);
  refused("ci95", "[0.9,0.1]", interval);
  refused("ci95", "[0.5,1.5]", interval);
  refused("status", "\"a,b\"",
          ".status\": expected one of ok, not_reached_upper_bound, extinct, budget_spent");
  refused("guarantee", "\"sure\"", ".guarantee\": expected one of unbiased, consistent, model_based, exact");
  refused("guarantee", "1", ".guarantee\": expected one of");
  refused("forward", "-1", ".cost.forward\": expected a whole number");
  refused("flops", "-1", ".cost.flops\": expected 0 or more");
  refused("seconds", "\"inf\"", ".cost.seconds\": expected 0 or more");
}

TEST_F(RunFolder, ASecondKeyIsNotTakenForTheFirst) {
  std::string line = example_line(0);
  line.back() = ',';
  line += "\"item\":\"x\"}";
  put("a", line + "\n" + commit_line(example(0).id, line) + "\n");
  expect_refused([&] { read_run(folder_); }, "shard-a.jsonl line 1: ");
}

TEST_F(RunFolder, AnUnknownTruthIsNull) {
  RunItem item = example(0);
  item.truth_count = item.truth_samples = 0;
  const std::string line = data_line(item, to_json(Estimate{.method = "mc", .target = {7}}));
  EXPECT_NE(line.find("\"truth\":null"), std::string::npos) << line;
  EXPECT_FALSE(parse_data_line(line, "line").truth_known());
  EXPECT_TRUE(parse_data_line(example_line(0), "line").truth_known());
}

TEST_F(RunFolder, AShardThatIsALinkIsLeftAlone) {
  write_file(folder_ + "/precious", "mine");
  fs::create_symlink("precious", shard("a"));
  expect_refused([&] { ShardWriter(folder_, "a"); }, "shard-a.jsonl: is a symbolic link");
  EXPECT_EQ(read_from(folder_ + "/precious", 0), "mine");
}

TEST_F(RunFolder, HeaderOfAnotherRun) {
  const RunHeader header = example_header();
  EXPECT_NO_THROW(check_same_run(parse_run_header(to_json(header), "run.json"), header, "runs/x"));
  const auto refused = [&](const std::function<void(RunHeader&)>& change, const std::string& part) {
    RunHeader other = header;
    change(other);
    expect_refused([&] { check_same_run(header, other, "runs/x"); },
                   "runs/x: holds a run with another " + part);
  };
  refused([](RunHeader& h) { h.suite_sha256[0] = 'b'; }, "suite (SHA-256): aaaa");
  refused([](RunHeader& h) { h.models[0].sha256[0] = 'c'; },
          "model dt-1l (its weights or its config.json differ: SHA-256)");
  refused([](RunHeader& h) { h.distributions[0].sha256[0] = 'd'; }, "distribution hex (SHA-256)");
  refused([](RunHeader& h) { h.version = "0.2.0"; }, "version of deeptail: 0.1.0 then, 0.2.0 now");
  expect_refused([] { parse_run_header(R"({"schema":2})", "run.json"); }, "expected 1, found 2");
  fs::remove(folder_ + "/run.json");
  expect_refused([&] { read_run(folder_); }, "run.json: cannot open");
}

TEST_F(RunFolder, TwoWritersOfOneNameGetShardsOfTheirOwn) {
  ShardWriter a(folder_, "x"), b(folder_, "x");
  EXPECT_EQ(a.path(), shard("x"));
  EXPECT_EQ(b.path(), shard("x-2"));
}

TEST_F(RunFolder, FollowsWhatOthersCommit) {
  CommittedItems items(folder_);
  items.refresh();
  EXPECT_EQ(items.size(), 0u);
  ShardWriter a(folder_, "a");
  for (std::uint64_t n = 0; n < 3; ++n) {
    a.append(example(n).id, example_line(n));
    EXPECT_FALSE(items.has(example(n).id));
    items.refresh();
    EXPECT_TRUE(items.has(example(n).id));
  }
  EXPECT_EQ(items.size(), 3u);
  EXPECT_EQ(items.seconds().at(example(1).id), 0.25);
}

// A full disk, played by the limit on the size of a file.
TEST_F(RunFolder, FullDiskLosesNothingThatWasCommitted) {
  const auto on_signal = std::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  ::getrlimit(RLIMIT_FSIZE, &before);
  const std::size_t one = pair_of(0).size();
  for (const std::size_t room : {std::size_t{5}, example_line(1).size(), one - 3}) {
    fs::remove(shard("a"));
    ShardWriter writer(folder_, "a");
    writer.append(example(0).id, example_line(0));
    rlimit limit{.rlim_cur = one + room, .rlim_max = before.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    expect_refused([&] { writer.append(example(1).id, example_line(1)); },
                   "what was committed before is safe");
    ::setrlimit(RLIMIT_FSIZE, &before);
    EXPECT_EQ(read_from(shard("a"), 0), pair_of(0));
    writer.append(example(1).id, example_line(1));
    EXPECT_EQ(read_run(folder_).items.size(), 2u);
  }
  std::signal(SIGXFSZ, on_signal);
}

}  // namespace
}  // namespace deeptail
