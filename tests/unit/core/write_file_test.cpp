#include "core/write_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <set>

#include "deeptail/core.h"

namespace deeptail {
namespace {

namespace fs = std::filesystem;

TEST(WriteFile, ReplacesWholeAndLeavesNothingElse) {
  std::string pattern = (fs::temp_directory_path() / "deeptail-write-XXXXXX").string();
  const fs::path folder = ::mkdtemp(pattern.data());
  const std::string path = (folder / "file").string();
  write_file(path, "first");
  write_file(path, "second");
  EXPECT_EQ(InputFile(path).text(), "second");
  fs::create_directory(folder / "taken");
  EXPECT_THROW(write_file((folder / "taken").string(), "x"), InputError);
  EXPECT_THROW(write_file((folder / "missing" / "file").string(), "x"), InputError);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder), fs::directory_iterator()), 2);
  fs::remove_all(folder);
}

TEST(WriteFile, RemovesWhatKilledWritersLeft) {
  std::string pattern = (fs::temp_directory_path() / "deeptail-write-XXXXXX").string();
  const fs::path folder = ::mkdtemp(pattern.data());
  const std::string path = (folder / "file").string();
  for (const char* name : {"file", "file.tmp-1-0", "file.tmp-77-3", "file2.tmp-1-0", "file.txt"})
    write_file((folder / name).string(), "x");
  remove_unfinished(path);
  std::set<std::string> left;
  for (const auto& entry : fs::directory_iterator(folder)) left.insert(entry.path().filename().string());
  EXPECT_EQ(left, (std::set<std::string>{"file", "file2.tmp-1-0", "file.txt"}));
  remove_unfinished((folder / "none" / "file").string());  // nothing to do
  fs::remove_all(folder);
}

}  // namespace
}  // namespace deeptail
