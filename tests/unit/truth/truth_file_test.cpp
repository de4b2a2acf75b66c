#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "core/gzip.h"
#include "core/json.h"
#include "core/write_file.h"
#include "sizes.h"
#include "truth/truth.h"

namespace deeptail {
namespace {

namespace fs = std::filesystem;

Json good() {
  const std::string hash(64, 'a');
  return Json{{"format", "deeptail-truth-1"},
              {"model", "m"},
              {"dist", "d"},
              {"model_sha256", hash},
              {"dist_sha256", hash},
              {"source", "deeptail"},
              {"seed", 1},
              {"samples", 6},
              {"ranges", {{{"source", "deeptail"}, {"seed", 1}, {"first", 10}, {"count", 6}}}},
              {"counts", {{"3", 5}, {"10", 1}}}};
}

std::string refusal(const Json& json) {
  try {
    parse_truth(json_text(json), "t.json");
  } catch (const InputError& e) {
    return e.what();
  }
  return "";
}

std::string after(const char* pointer, const Json& value) {
  Json json = good();
  json[Json::json_pointer(pointer)] = value;
  return refusal(json);
}

TEST(TruthFile, ReadsAndWritesTheSame) {
  const Truth truth = parse_truth(json_text(good()), "t.json");
  EXPECT_EQ(truth.samples(), 6u);
  EXPECT_EQ(truth.count(3), 5u);
  EXPECT_EQ(truth.count(4), 0u);
  EXPECT_DOUBLE_EQ(truth.q(10), 1.0 / 6.0);
  EXPECT_EQ(describe(truth.ranges[0]), "deeptail seed 1, inputs 10 to 15");
  EXPECT_EQ(parse_json(to_json(truth), "test"), good());
}

TEST(TruthFile, CompressedIsTheSame) {
  const std::string text = json_text(good());
  EXPECT_EQ(parse_json(to_json(parse_truth(gzipped(text), "t.json.gz")), "test"), good());
  EXPECT_THROW(parse_truth(gzipped(gzipped(text)), "t.json.gz"), InputError);
  const auto path =
      (fs::temp_directory_path() / fmt::format("deeptail-truth-{}.json.gz", ::getpid())).string();
  write_truth(path, parse_truth(text, "t.json"));
  EXPECT_TRUE(is_compressed(InputFile(path).text()));
  EXPECT_EQ(read_truth(path).counts, parse_truth(text, "t.json").counts);
  fs::remove(path);
}

TEST(TruthFile, ShippedFilesComeBackByteForByte) {
  std::size_t n = 0;
  for (const auto& entry : fs::directory_iterator(fmt::format("{}/truth", DEEPTAIL_SOURCE))) {
    const InputFile file(entry.path().string());
    if (is_event_counts(file.path())) continue;  // event_counts_test.cpp
    if (is_compressed(file.text())) continue;    // agreement_test.cpp
    EXPECT_EQ(to_json(parse_truth(file.text(), file.path())), file.text()) << file.path();
    if (++n == sized(0u, 4u)) break;  // 0: never
  }
  EXPECT_EQ(n, sized(24u, 4u));
}

TEST(TruthFile, RefusesWhatDoesNotAddUp) {
  EXPECT_EQ(after("/counts/3", 4), "t.json: the counts sum to 1 less than the 6 samples");
  EXPECT_EQ(after("/counts/3", 6), "t.json: the counts sum to more than the 6 samples");
  EXPECT_EQ(after("/counts/3", 0), "t.json: key \"counts.3\": expected a whole number from 1 to 6, found 0");
  EXPECT_EQ(after("/counts/x", 1), "t.json: counts: \"x\" is not a token id");
  EXPECT_EQ(after("/counts/03", 1), "t.json: counts: \"03\" is not a token id");
  EXPECT_EQ(after("/counts/-3", 1), "t.json: counts: \"-3\" is not a token id");
  EXPECT_EQ(after("/ranges/0/count", 5), "t.json: the ranges hold 1 samples fewer than the 6 stated");
  EXPECT_EQ(after("/ranges/0/count", 7), "t.json: the ranges hold more than the 6 samples");
  EXPECT_EQ(after("/ranges/1", good().at("ranges").at(0)),
            "t.json: deeptail seed 1, inputs 10 to 15 overlaps deeptail seed 1, inputs 10 to 15");
  EXPECT_NE(after("/ranges/0/seed", -1).find("t.json: key \"ranges[0].seed\": expected a whole number"),
            std::string::npos);
  EXPECT_EQ(after("/ranges", Json::array()), "t.json: key \"ranges\": expected at least one range, found []");
  EXPECT_EQ(after("/format", "x"), "t.json: key \"format\": expected \"deeptail-truth-1\", found \"x\"");
  EXPECT_EQ(after("/model_sha256", "x"),
            "t.json: key \"model_sha256\": expected 64 lower-case hex digits, found \"x\"");
  EXPECT_EQ(after("/counts", 1), "t.json: key \"counts\": expected an object of token id and count, found 1");
  for (const char* key :
       {"format", "model", "dist", "model_sha256", "dist_sha256", "samples", "ranges", "counts"}) {
    Json json = good();
    json.erase(key);
    EXPECT_EQ(refusal(json), fmt::format("t.json: key \"{}\" is missing", key));
  }
}

class MergeTruth : public ::testing::Test {
 protected:
  MergeTruth() {
    std::string pattern = (fs::temp_directory_path() / "deeptail-merge-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
  }
  ~MergeTruth() override { fs::remove_all(folder_); }

  std::string file(const char* name, std::uint64_t seed, std::uint64_t first,
                   const char* model_hash = nullptr, const char* source = "deeptail") const {
    Json json = good();
    json["ranges"][0]["source"] = json["source"] = source;
    json["ranges"][0]["seed"] = seed;
    json["ranges"][0]["first"] = first;
    if (model_hash != nullptr) json["model_sha256"] = model_hash;
    write_file((folder_ / name).string(), json_text(json));
    return (folder_ / name).string();
  }
  static std::string refusal_of(const std::vector<std::string>& paths) {
    try {
      merge_truth(paths);
    } catch (const InputError& e) {
      return e.what();
    }
    return "";
  }

  fs::path folder_;
};

TEST_F(MergeTruth, AddsCountsAndJoinsRanges) {
  const std::vector<std::string> paths = {file("b", 1, 16), file("c", 2, 10), file("a", 1, 10)};
  const Truth merged = merge_truth(paths);
  EXPECT_EQ(merged.samples(), 18u);
  EXPECT_EQ(merged.count(3), 15u);
  const std::vector<TruthRange> expected = {{"deeptail", 1, 10, 12}, {"deeptail", 2, 10, 6}};
  EXPECT_EQ(merged.ranges, expected);
  const Json json = parse_json(to_json(merged), "test");
  EXPECT_EQ(json.at("source"), "deeptail");
  EXPECT_FALSE(json.contains("seed"));  // there are two
  EXPECT_EQ(parse_truth(to_json(merged), "merged").ranges, expected);
}

TEST_F(MergeTruth, ManyRanges) {
  constexpr std::uint64_t kRanges = 5000;
  std::vector<std::string> paths;
  for (const std::uint64_t part : {1, 0, 2}) {
    Truth truth{.model = "m", .dist = "d", .counts = {{5, kRanges}}};
    for (std::uint64_t i = 0; i < kRanges; ++i) truth.ranges.push_back({"x", 1, 3 * i + part, 1});
    paths.push_back((folder_ / std::to_string(part)).string());
    write_file(paths.back(), to_json(truth));
  }
  const Truth merged = merge_truth(paths);
  EXPECT_EQ(merged.ranges, (std::vector<TruthRange>{{"x", 1, 0, 3 * kRanges}}));
  EXPECT_EQ(merged.count(5), 3 * kRanges);
  paths.push_back(paths[1]);
  EXPECT_NE(refusal_of(paths).find("overlaps x seed 1, inputs 0 to 0"), std::string::npos)
      << refusal_of(paths);
}

TEST_F(MergeTruth, CountsByFp16HaveTheSameInputs) {
  const std::string a = file("a", 1, 10), same = file("b", 1, 10, nullptr, "deeptail-fp16"),
                    next = file("c", 1, 16, nullptr, "deeptail-fp16");
  EXPECT_NE(refusal_of({a, same}).find("overlaps deeptail-fp16 seed 1"), std::string::npos);
  EXPECT_THROW(compare_truth(read_truth(a), read_truth(same)), InputError);
  EXPECT_EQ(refusal_of({a, file("d", 1, 10, nullptr, "pytorch")}), "");
  const Truth merged = merge_truth(std::vector<std::string>{next, a});
  EXPECT_EQ(merged.ranges.size(), 2u);  // two sources stay two ranges
  EXPECT_EQ(parse_truth(to_json(merged), "merged").ranges, merged.ranges);
}

TEST_F(MergeTruth, RefusesOverlapsAndOtherSubjects) {
  const std::string a = file("a", 1, 10);
  EXPECT_NE(refusal_of({a, file("b", 1, 15)})
                .find("deeptail seed 1, inputs 10 to 15 overlaps deeptail seed 1, inputs 15 to 20"),
            std::string::npos);
  EXPECT_NE(refusal_of({a, a}).find("overlaps"), std::string::npos);
  EXPECT_EQ(refusal_of({a, file("c", 1, 16)}), "");
  const std::string other(64, 'b');
  EXPECT_NE(refusal_of({a, file("d", 1, 16, other.c_str())}).find("different models"), std::string::npos);
  EXPECT_NE(refusal_of({a, file("e", 1, 16, "")}).find("different models"), std::string::npos);
}

TEST(TruthFile, IsFoundByNameOrPath) {
  EXPECT_EQ(truth_name("dt-1l", "hex"), "dt-1l-hex.json");
  EXPECT_EQ(truth_path("counts/mine.json", "m", "d"), "counts/mine.json");
  try {
    truth_path("no-such-counts.json", "m", "d");
    ADD_FAILURE();
  } catch (const InputError& e) {
    EXPECT_NE(std::string(e.what()).find("truth no-such-counts.json of m on d: not found"),
              std::string::npos);
    EXPECT_EQ(e.hint(), Hint::kCountTruth);
  }
}

}  // namespace
}  // namespace deeptail
