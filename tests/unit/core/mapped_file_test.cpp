#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "deeptail/core.h"

namespace deeptail {
namespace {

namespace fs = std::filesystem;

TEST(MappedFile, ReadsWholeAndEmptyFiles) {
  const fs::path path = fs::temp_directory_path() / "deeptail_mapped_file_test";
  std::ofstream(path) << "hello";
  EXPECT_EQ(MappedFile(path.string()).text(), "hello");
  std::ofstream(path, std::ios::trunc).close();
  EXPECT_TRUE(MappedFile(path.string()).bytes().empty());
  fs::remove(path);
}

TEST(MappedFile, RefusesWhatIsNotAFile) {
  EXPECT_THROW(MappedFile("no/such/file"), InputError);
  EXPECT_THROW(MappedFile(fs::temp_directory_path().string()), InputError);
  const fs::path pipe = fs::temp_directory_path() / "deeptail_mapped_file_pipe";
  fs::remove(pipe);
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_THROW(MappedFile(pipe.string()), InputError);  // and does not wait for a writer
  fs::remove(pipe);
}

}  // namespace
}  // namespace deeptail
