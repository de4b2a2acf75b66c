#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "core/write_file.h"
#include "deeptail/truth.h"
#include "estimators/subject.h"
#include "sizes.h"

namespace deeptail {
namespace {

namespace fs = std::filesystem;

class CountTruth : public ::testing::Test {
 protected:
  CountTruth() : dist_(shipped("caps")) {
    std::string pattern = (fs::temp_directory_path() / "deeptail-count-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
  }
  ~CountTruth() override { fs::remove_all(folder_); }

  static constexpr std::uint64_t kSamples = sized(3000, 1500);  // six batches at least

  TruthRequest request(const char* name, std::uint64_t samples = kSamples, std::uint64_t first = 0) const {
    return {.provenance = {.model = "dt-1l",
                           .dist = "caps",
                           .model_sha256 = std::string(64, 'a'),
                           .dist_sha256 = dist_.sha256},
            .seed = 1,
            .first = first,
            .samples = samples,
            .out = (folder_ / name).string()};
  }
  CountOutcome count(const TruthRequest& r, std::size_t threads = 2, const Watch& watch = {}) const {
    ThreadPool pool(threads);
    return count_truth(dt_1l().config().d_vocab, count_on_cpu(dt_1l(), dist_, r.seed, pool), r, watch);
  }

  Distribution dist_;
  fs::path folder_;
};

TEST_F(CountTruth, SameForAnyThreadsAndAnyCutIntoRanges) {
  ASSERT_EQ(count(request("whole"), 1), CountOutcome::kFinished);
  ASSERT_EQ(count(request("again"), 7), CountOutcome::kFinished);
  ASSERT_EQ(count(request("a", 1234)), CountOutcome::kFinished);
  ASSERT_EQ(count(request("b", kSamples - 1234, 1234)), CountOutcome::kFinished);
  const Truth whole = read_truth(request("whole").out);
  EXPECT_EQ(whole.samples(), kSamples);
  EXPECT_EQ(read_truth(request("again").out).counts, whole.counts);
  const std::vector<std::string> parts = {request("b").out, request("a").out};
  const Truth merged = merge_truth(parts);
  EXPECT_EQ(merged.counts, whole.counts);
  EXPECT_EQ(merged.ranges, whole.ranges);
}

TEST_F(CountTruth, ContinuesAfterEveryStop) {
  ASSERT_EQ(count(request("whole")), CountOutcome::kFinished);
  const TruthRequest r = request("pieces");
  std::size_t runs = 1;
  while (count(r, 2, [](const Progress&) { return false; }) == CountOutcome::kStopped) {  // one batch a run
    EXPECT_TRUE(fs::exists(r.out + ".partial"));
    EXPECT_FALSE(fs::exists(r.out));
    ++runs;
  }
  EXPECT_GT(runs, 5u);
  EXPECT_EQ(to_json(read_truth(r.out)), to_json(read_truth(request("whole").out)));
  EXPECT_FALSE(fs::exists(r.out + ".partial"));
}

TEST_F(CountTruth, FinishedIsLeftAloneAndOthersAreRefused) {
  const TruthRequest r = request("out", 500);
  ASSERT_EQ(count(r), CountOutcome::kFinished);
  const auto written = fs::last_write_time(r.out);
  EXPECT_EQ(count(r), CountOutcome::kAlreadyFinished);
  EXPECT_EQ(fs::last_write_time(r.out), written);
  TruthRequest other = r;
  other.seed = 2;
  EXPECT_THROW(count(other), InputError);
  other = r, other.samples = 600;
  EXPECT_THROW(count(other), InputError);
  other = r, other.provenance.model_sha256 = std::string(64, 'b');
  EXPECT_THROW(count(other), InputError);
}

TEST_F(CountTruth, UnfinishedWorkOfAnotherRequestIsRefused) {
  const TruthRequest r = request("out", 3000);
  ASSERT_EQ(count(r, 2, [](const Progress&) { return false; }), CountOutcome::kStopped);
  TruthRequest other = r;
  other.first = 1;
  EXPECT_THROW(count(other), InputError);
  other = r, other.samples = 100;  // fewer than are done
  EXPECT_THROW(count(other), InputError);
  write_file(r.out + ".partial", "{");
  EXPECT_THROW(count(r), InputError);
}

// As two processes would: a lock belongs to the open file.
TEST_F(CountTruth, OneAtATimeCountsIntoAFile) {
  const TruthRequest r = request("out", 1500);
  TruthRequest other = r;
  other.seed = 2;
  std::size_t refused = 0;
  const auto meanwhile = [&](const Progress&) {
    try {
      count(other);
    } catch (const InputError& e) {
      refused += std::string(e.what()).find("another process is at work") != std::string::npos ? 1 : 0;
    }
    return true;
  };
  EXPECT_EQ(count(r, 2, meanwhile), CountOutcome::kFinished);
  EXPECT_GT(refused, 0u);
  EXPECT_EQ(read_truth(r.out).ranges[0].seed, 1u);
  for (const auto& entry : fs::directory_iterator(folder_)) EXPECT_EQ(entry.path(), r.out);
}

TEST_F(CountTruth, RefusesImpossibleRanges) {
  EXPECT_THROW(count(request("out", 0)), InputError);
  EXPECT_THROW(count(request("out", 10, std::uint64_t{1} << 62)), InputError);
  TruthRequest nowhere = request("out", 10);
  nowhere.out = (folder_ / "missing" / "out").string();
  EXPECT_THROW(count(nowhere), InputError);
}

}  // namespace
}  // namespace deeptail
