#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <limits>

#include "core/write_file.h"
#include "deeptail/truth.h"
#include "estimators/subject.h"
#include "sizes.h"

namespace deeptail {
namespace {

namespace fs = std::filesystem;

class KeptHits : public ::testing::Test {
 protected:
  KeptHits() : dist_(shipped("caps")) {
    std::string pattern = (fs::temp_directory_path() / "deeptail-hits-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
  }
  ~KeptHits() override { fs::remove_all(folder_); }

  static constexpr std::uint64_t kSamples = sized(3000, 1500), kMost = 5;

  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  TruthRequest request(const std::string& name, std::uint64_t samples = kSamples,
                       std::uint64_t first = 0) const {
    return {.provenance = {.model = "dt-1l",
                           .dist = "caps",
                           .model_sha256 = std::string(64, 'a'),
                           .dist_sha256 = dist_.sha256},
            .seed = 1,
            .first = first,
            .samples = samples,
            .out = path(name)};
  }
  // most 0: nothing is kept.
  CountOutcome count(TruthRequest r, std::uint64_t most, std::size_t threads = 2,
                     const Watch& watch = {}) const {
    ThreadPool pool(threads);
    const std::size_t d_vocab = dt_1l().config().d_vocab;
    std::optional<HitStore> hits;
    if (most > 0) hits.emplace(d_vocab, most);
    r.hits = hits ? &*hits : nullptr;
    return count_truth(d_vocab, count_on_cpu(dt_1l(), dist_, r.seed, pool, r.hits), r, watch);
  }
  // One by one.
  std::map<TokenId, std::vector<HitInput>> expected(std::uint64_t most) const {
    ThreadPool pool(1);
    InputRunner runner(dt_1l(), dist_, 1, pool);
    const auto said = runner.run(0, kSamples);
    std::map<TokenId, std::vector<HitInput>> out;
    for (std::size_t i = 0; i < said.size(); ++i)
      if (out[said[i]].size() < most) out[said[i]].push_back({0, i});
    return out;
  }

  Distribution dist_;
  fs::path folder_;
};

TEST_F(KeptHits, AreTheFirstOfEachTokenForAnyThreads) {
  const auto first = expected(kMost);
  for (const std::size_t threads : {1, 2, 7}) {
    const TruthRequest r = request("t" + std::to_string(threads));
    ASSERT_EQ(count(r, kMost, threads), CountOutcome::kFinished);
    const TruthHits hits = read_hits(hits_path(r.out));
    EXPECT_EQ(hits.inputs, first);
    EXPECT_EQ(hits.most, kMost);
    const Truth truth = read_truth(r.out);
    EXPECT_EQ(hits.ranges, truth.ranges);
    EXPECT_NO_THROW(check_hits_of(hits, "hits", truth));
    EXPECT_FALSE(fs::exists(hits_path(r.out + ".partial")));
  }
}

TEST_F(KeptHits, AreInputsThatSayTheToken) {
  ASSERT_EQ(count(request("t"), kMost), CountOutcome::kFinished);
  const TruthHits hits = read_hits(hits_path(path("t")));
  ThreadPool pool(1);
  const std::size_t d = dt_1l().config().d_model;
  for (const auto& [token, inputs] : hits.inputs) {
    const std::vector<TokenId> tokens = hit_tokens(hits, dist_, token);
    ASSERT_EQ(tokens.size(), inputs.size() * dist_.length());
    AlignedVector<float> resid(inputs.size() * d);
    std::vector<TokenId> said(inputs.size());
    final_residuals(dt_1l(), {tokens, dist_.length()}, pool, {resid.data(), d});
    argmax(dt_1l().head(), inputs.size(), {resid.data(), d}, pool, said);
    for (const TokenId t : said) EXPECT_EQ(t, token);
  }
  EXPECT_TRUE(hit_tokens(hits, dist_, 4095).empty());
  EXPECT_THROW(hit_tokens(hits, shipped("hex"), hits.inputs.begin()->first), InputError);
}

TEST_F(KeptHits, ContinueAfterEveryStop) {
  const TruthRequest r = request("t");
  int runs = 0;
  while (count(r, kMost, 2, [](const Progress&) { return false; }) == CountOutcome::kStopped) ++runs;
  EXPECT_GT(runs, 0);
  EXPECT_EQ(read_hits(hits_path(r.out)).inputs, expected(kMost));
}

// The inputs are saved before the counts: a crash between leaves them ahead.
TEST_F(KeptHits, MayBeAheadOfTheCounts) {
  const TruthRequest r = request("t");
  const std::string partial = r.out + ".partial";
  ASSERT_EQ(count(r, kMost, 2, [](const Progress&) { return false; }), CountOutcome::kStopped);
  const InputFile counts(partial);
  const std::string before(counts.text());
  ASSERT_EQ(count(r, kMost, 2, [](const Progress&) { return false; }), CountOutcome::kStopped);
  write_file(partial, before);
  ASSERT_EQ(count(r, kMost), CountOutcome::kFinished);
  EXPECT_EQ(read_hits(hits_path(r.out)).inputs, expected(kMost));
}

TEST_F(KeptHits, AnotherNumberOfThemIsAnotherRequest) {
  const TruthRequest r = request("t");
  const auto stop = [](const Progress&) { return false; };
  ASSERT_EQ(count(r, kMost, 2, stop), CountOutcome::kStopped);
  EXPECT_THROW(count(r, kMost + 1), InputError);
  EXPECT_THROW(count(r, 0), InputError);
  ASSERT_EQ(count(r, kMost), CountOutcome::kFinished);
  EXPECT_EQ(count(r, kMost), CountOutcome::kAlreadyFinished);
  EXPECT_EQ(count(r, 0), CountOutcome::kAlreadyFinished);
  EXPECT_THROW(count(r, kMost + 1), InputError);
  const TruthRequest without = request("u");
  ASSERT_EQ(count(without, 0, 2, stop), CountOutcome::kStopped);
  EXPECT_THROW(count(without, kMost), InputError);
  ASSERT_EQ(count(without, 0), CountOutcome::kFinished);
  EXPECT_THROW(count(without, kMost), InputError);
}

TEST_F(KeptHits, MergeIntoThoseOfOneRun) {
  ASSERT_EQ(count(request("a", 700), kMost), CountOutcome::kFinished);
  ASSERT_EQ(count(request("b", kSamples - 700, 700), kMost + 2), CountOutcome::kFinished);
  const std::vector<std::string> parts = {hits_path(path("b")), hits_path(path("a"))};
  const TruthHits merged = merge_hits(parts);
  EXPECT_EQ(merged.inputs, expected(kMost));
  EXPECT_EQ(merged.most, kMost);
  EXPECT_EQ(merged.ranges.size(), 1u);
  TruthRequest other = request("c", 500);
  other.seed = 2;
  ASSERT_EQ(count(other, kMost), CountOutcome::kFinished);
  const std::vector<std::string> seeds = {hits_path(path("c")), hits_path(path("a"))};
  const TruthHits two = merge_hits(seeds);
  EXPECT_EQ(two.ranges.size(), 2u);
  const std::vector<std::string> counts = {path("c"), path("a")};
  EXPECT_NO_THROW(check_hits_of(two, "two", merge_truth(counts)));
  const TruthHits again = parse_hits(to_jsonl(two), "again");
  EXPECT_EQ(again.inputs, two.inputs);
  EXPECT_EQ(again.ranges, two.ranges);
  const std::vector<std::string> twice = {hits_path(path("a")), hits_path(path("a"))};
  EXPECT_THROW(merge_hits(twice), InputError);
}

TEST(HitsFile, RefusesWhatDoesNotFitTogether) {
  const std::string header =
      R"({"format":"deeptail-hits-1","model":"m","dist":"d","model_sha256":"","dist_sha256":"","most":2,)"
      R"("ranges":[{"source":"deeptail","seed":1,"first":10,"count":5}]})"
      "\n";
  const auto refused = [&](const std::string& lines, const std::string& why) {
    try {
      parse_hits(lines, "hits");
      ADD_FAILURE() << "not refused: " << lines;
    } catch (const InputError& e) {
      EXPECT_NE(std::string(e.what()).find(why), std::string::npos) << e.what();
    }
  };
  EXPECT_EQ(parse_hits(header, "hits").inputs.size(), 0u);
  EXPECT_EQ(parse_hits(header + R"({"token":3,"range":0,"inputs":[10,14]})", "hits").inputs.at(3).size(), 2u);
  refused("", "hits");
  refused(R"({"format":"deeptail-truth-1"})", "deeptail-hits-1");
  refused(header + R"({"token":3,"range":0,"inputs":[9]})", "line 2");
  refused(header + R"({"token":3,"range":0,"inputs":[15]})", "line 2");
  refused(header + R"({"token":3,"range":1,"inputs":[12]})", "range");
  refused(header + R"({"token":3,"range":0,"inputs":[]})", "at least one input");
  refused(header + R"({"token":3,"range":0,"inputs":[12,12]})", "does not come after");
  refused(header + R"({"token":3,"range":0,"inputs":[10,11,12]})", "more than the 2 stated");
  refused(header + "{\"token\":3,\"range\":0,\"inputs\":[12]}\n{\"token\":2,\"range\":0,\"inputs\":[13]}\n",
          "comes after token 3");
}

TEST(HitsFile, MustBeOfTheCountBesideIt) {
  const TruthRange range{.source = "deeptail", .seed = 1, .first = 0, .count = 10};
  const Truth truth{.model = "m", .dist = "d", .ranges = {range}, .counts = {{3, 8}, {5, 2}}};
  TruthHits hits{.model = "m",
                 .dist = "d",
                 .most = 2,
                 .ranges = {range},
                 .inputs = {{3, {{0, 1}, {0, 2}}}, {5, {{0, 0}, {0, 7}}}}};
  EXPECT_NO_THROW(check_hits_of(hits, "hits", truth));
  hits.inputs[5].pop_back();
  EXPECT_THROW(check_hits_of(hits, "hits", truth), InputError);
  hits.inputs[5].push_back({0, 9});
  hits.inputs[6].push_back({0, 9});
  EXPECT_THROW(check_hits_of(hits, "hits", truth), InputError);
}

TEST(HitStore, RefusesWhatDoesNotFitIntoMemory) {
  EXPECT_THROW(HitStore(4096, std::uint64_t{1} << 40), InputError);
  EXPECT_THROW(HitStore(4096, std::numeric_limits<std::uint64_t>::max()), InputError);
  EXPECT_THROW(HitStore(4096, 0), InputError);
}

}  // namespace
}  // namespace deeptail
