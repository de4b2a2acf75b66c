#include "core/write_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

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
  EXPECT_EQ(MappedFile(path).text(), "second");
  fs::create_directory(folder / "taken");
  EXPECT_THROW(write_file((folder / "taken").string(), "x"), InputError);
  EXPECT_THROW(write_file((folder / "missing" / "file").string(), "x"), InputError);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder), fs::directory_iterator()), 2);
  fs::remove_all(folder);
}

}  // namespace
}  // namespace deeptail
