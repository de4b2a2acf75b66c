// A run against other counts than those that chose its targets.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "core/write_file.h"
#include "deeptail/runs.h"

namespace deeptail {
namespace {

namespace fs = std::filesystem;

class RescoreRun : public testing::Test {
 protected:
  ~RescoreRun() override { fs::remove_all(folder_); }

  // Tokens 3 and 4 of two-token targets, 5 alone, and 9, which the new counts never saw.
  static deeptail::Run chosen_by_small_counts() {
    deeptail::Run run{.header = {.models = {{"m", std::string(64, 'b'), 1, 128, 16}},
                                 .distributions = {{"hex", std::string(64, 'c')}},
                                 .truths = {{"m-hex", std::string(64, 'd')}}}};
    for (const std::vector<TokenId>& target : {std::vector<TokenId>{3, 4}, {5}, {9}})
      run.items.push_back(
          {.model = "m", .dist = "hex", .target = target, .truth_count = 1, .truth_samples = 16});
    return run;
  }
  void write_counts(const std::string& model_sha256, const std::string& last_token = "15",
                    const std::string& model = "m") {
    write_file((folder_ / "m-hex.json").string(),
               fmt::format(R"({{"format":"deeptail-truth-1","model":"{}","dist":"hex","model_sha256":"{}",)"
                           R"("dist_sha256":"{}","source":"deeptail","seed":1,"samples":1024,"ranges":)"
                           R"([{{"source":"deeptail","seed":1,"first":0,"count":1024}}],)"
                           R"("counts":{{"3":20,"4":7,"5":2,"{}":995}}}})",
                           model, model_sha256, std::string(64, 'c'), last_token));
  }
  void refused(const deeptail::Run& run, const std::string& part) {
    try {
      rescore_run(run, folder_.string());
      FAIL() << "scored again";
    } catch (const InputError& e) {
      EXPECT_NE(std::string(e.what()).find(part), std::string::npos) << e.what();
    }
  }

  const fs::path folder_ = [] {
    const fs::path p = fs::temp_directory_path() / fmt::format("deeptail-rescore-{}", ::getpid());
    fs::create_directory(p);
    return p;
  }();
};

TEST_F(RescoreRun, TakesTheCountsOfTheFolder) {
  write_counts(std::string(64, 'b'));
  const deeptail::Run run = rescore_run(chosen_by_small_counts(), folder_.string());
  const std::uint64_t expected[] = {27, 2, 0};
  for (std::size_t i = 0; i < run.items.size(); ++i) {
    EXPECT_EQ(run.items[i].truth_count, expected[i]) << i;
    EXPECT_EQ(run.items[i].truth_samples, 1024u) << i;
  }
  ASSERT_EQ(run.header.truths.size(), 1u);
  EXPECT_EQ(run.header.truths[0].name, "m-hex");
  EXPECT_NE(run.header.truths[0].sha256, std::string(64, 'd'));
}

// Runs that were made before and after counts grew do not join; scored against the same counts they do.
TEST_F(RescoreRun, RunsOfOldAndNewCountsJoinAfterwards) {
  write_counts(std::string(64, 'b'));
  deeptail::Run old = chosen_by_small_counts(), fresh = chosen_by_small_counts();
  for (std::size_t i = 0; i < 3; ++i) {
    old.items[i].id = fmt::format("old-{}", i);
    fresh.items[i].id = fmt::format("fresh-{}", i);
  }
  fresh.header.truths[0].sha256 = std::string(64, 'e');
  EXPECT_THROW(join_runs({old, fresh}), InputError);
  const deeptail::Run joined =
      join_runs({rescore_run(old, folder_.string()), rescore_run(fresh, folder_.string())});
  EXPECT_EQ(joined.items.size(), 6u);
}

TEST_F(RescoreRun, RefusesCountsOfSomethingElse) {
  refused(chosen_by_small_counts(), "m-hex.json");
  write_counts(std::string(64, 'f'));
  refused(chosen_by_small_counts(), "another model");
  write_counts("", "15", "other");  // imported: the name must do
  refused(chosen_by_small_counts(), "counts of the model other, expected m");
  write_counts(std::string(64, 'b'), "16");
  refused(chosen_by_small_counts(), "counts token 16");
  write_counts(std::string(64, 'b'));
  deeptail::Run run = chosen_by_small_counts();
  run.items[0].dist = "camel";
  refused(run, "distribution camel, which its run.json does not name");
}

TEST_F(RescoreRun, WhatIsNotKnownMayStaySo) {
  deeptail::Run run = chosen_by_small_counts();
  for (RunItem& item : run.items) item.truth_count = item.truth_samples = 0;
  run.header.truths.clear();
  deeptail::Run still = rescore_run(run, folder_.string());
  EXPECT_FALSE(still.items[0].truth_known());
  EXPECT_TRUE(still.header.truths.empty());
  write_counts(std::string(64, 'b'));
  EXPECT_EQ(rescore_run(run, folder_.string()).items[0].truth_count, 27u);
}

}  // namespace
}  // namespace deeptail
