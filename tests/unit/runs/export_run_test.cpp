#include "runs/export_run.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "core/gzip.h"
#include "core/write_file.h"
#include "runs/packed_run.h"
#include "runs/run_folder.h"

namespace deeptail {
namespace {

namespace fs = std::filesystem;

RunItem exported_item() {
  return {.id = "00000000000000ab",
          .model = "m,1",
          .dist = "d",
          .target_text = "=1+1",
          .method = "mc",
          .variant = "-v",
          .target = {7},
          .truth_count = 1,
          .truth_samples = 4,
          .log_p = -INFINITY,
          .log_low = -INFINITY,
          .status = "ok",
          .guarantee = "unbiased",
          .seed = 3,
          .warnings = {"@a", "b"}};
}

TEST(ExportedRun, TextsAreQuotedAndNoFormulas) {
  const std::string csv = csv_of({.items = {exported_item()}});
  EXPECT_EQ(csv.substr(csv.find('\n') + 1),
            "00000000000000ab,\"m,1\",d,7,'=1+1,mc,'-v,0,1,4,0.25,0,-inf,-inf,0,ok,unbiased,0,0,0,0,0,0,0,3,"
            "0,'@a; b\n");
}

TEST(ExportedRun, AnUnknownTruthIsEmpty) {
  RunItem item = exported_item();
  item.truth_samples = item.truth_count = 0;
  const std::string csv = csv_of({.items = {item}}), line = csv.substr(csv.find('\n') + 1);
  EXPECT_NE(line.find(",'-v,0,,,,0,-inf,"), std::string::npos) << line;
  EXPECT_EQ(std::count(line.begin(), line.end(), ',') - 1,
            std::count(csv.begin(), csv.begin() + static_cast<std::ptrdiff_t>(csv.find('\n')), ','));
}

// Items that others commit between two looks at the folder are in both tables or in none.
TEST(ExportedRun, IsOneMomentOfTheFolder) {
  std::string folder = (fs::temp_directory_path() / "deeptail-export-XXXXXX").string();
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  RunItem item = exported_item();
  const std::string line = data_line(item, to_json(Estimate{.method = "mc", .target = {7}}));
  write_file(folder + "/run.json", to_json(RunHeader{.suite_sha256 = std::string(64, 'a'), .items = 2}));
  ShardWriter writer(folder, "1of1");
  writer.append(item.id, line);
  const RunSnapshot snapshot = read_snapshot(folder);
  item.id[0] = '1';
  writer.append(item.id, data_line(item, to_json(Estimate{.method = "mc", .target = {7}})));
  EXPECT_EQ(snapshot.run.items.size(), 1u);
  EXPECT_EQ(jsonl_of(snapshot), line + "\n");
  EXPECT_EQ(read_snapshot(folder).run.items.size(), 2u);
  fs::remove_all(folder);
}

std::string refusal(const std::string& path) {
  try {
    read_run(path);
  } catch (const InputError& e) {
    return e.what();
  }
  return "";
}

TEST(PackedRun, ReadsLikeItsFolder) {
  const std::string folder = std::string(DEEPTAIL_TEST_DATA) + "/report/run";
  std::string path = (fs::temp_directory_path() / "deeptail-packed-XXXXXX").string();
  ASSERT_NE(::mkdtemp(path.data()), nullptr);
  const std::string file = path + "/run.gz";
  const std::string packed = packed_run(read_snapshot(folder));
  write_file(file, packed);
  EXPECT_EQ(csv_of(read_run(file)), csv_of(read_run(folder)));
  EXPECT_EQ(to_json(read_run(file).header), to_json(read_run(folder).header));
  EXPECT_EQ(packed_run(read_snapshot(file)), packed) << "packed again";
  write_file(file, packed.substr(0, packed.size() / 2));
  EXPECT_NE(refusal(file).find("ends too early"), std::string::npos);
  write_file(file, gzipped("{}"));
  EXPECT_NE(refusal(file).find("found no lines"), std::string::npos);
  std::string text = gunzipped(packed, "file");
  text[text.find("log10_p") + 12] ^= 1;
  write_file(file, gzipped(text));
  EXPECT_NE(refusal(file).find("checksum"), std::string::npos) << refusal(file);
  fs::remove_all(path);
}

}  // namespace
}  // namespace deeptail
