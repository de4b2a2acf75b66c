#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "core/write_file.h"
#include "deeptail/truth.h"

namespace deeptail {
namespace {

const std::string kPyTorchFile =
    fmt::format("{}/tensors/torch-2/single_int64.pt", DEEPTAIL_TEST_DATA);  // -1, 0, 1, 2, 3

// What torch.save wrote for five whole numbers, with other numbers in their place.
std::string with_values(const std::vector<std::int64_t>& values) {
  const InputFile file(kPyTorchFile);
  std::string bytes(file.text());
  const std::vector<std::int64_t> old = {-1, 0, 1, 2, 3};
  const std::string_view pattern(reinterpret_cast<const char*>(old.data()), 40);
  std::memcpy(bytes.data() + bytes.find(pattern), values.data(), 40);
  return bytes;
}

TEST(ImportTruth, OneTensorOfCounts) {
  const std::vector<std::int64_t> values = {0, 5, 0, std::int64_t{1} << 32, 1};
  const std::string path = (std::filesystem::temp_directory_path() / "deeptail_frequencies.pt").string();
  write_file(path, with_values(values));
  const Truth truth = import_truth(path, "gelu-1l", "hex");
  for (std::size_t id = 0; id < values.size(); ++id)
    EXPECT_EQ(truth.count(static_cast<TokenId>(id)), static_cast<std::uint64_t>(values[id]));
  EXPECT_EQ(truth.samples(), (std::uint64_t{1} << 32) + 6);
  EXPECT_EQ(truth.counts.size(), 3u);
  EXPECT_EQ(truth.model, "gelu-1l");
  EXPECT_TRUE(truth.ranges.at(0).source.starts_with("import "));
  EXPECT_EQ(parse_truth(to_json(truth), "t.json").counts, truth.counts);
  const std::vector<std::int64_t> nothing(5);
  write_file(path, with_values(nothing));
  EXPECT_THROW(import_truth(path, "m", "d"), InputError);
  std::filesystem::remove(path);
}

TEST(ImportTruth, RefusesOtherFiles) {
  EXPECT_THROW(import_truth(kPyTorchFile, "m", "d"), InputError);  // a negative count
  EXPECT_THROW(import_truth(fmt::format("{}/tensors/torch-2/state_dict.pth", DEEPTAIL_TEST_DATA), "m", "d"),
               InputError);
}

}  // namespace
}  // namespace deeptail
