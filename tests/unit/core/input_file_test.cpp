#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "core/regular_file.h"
#include "core/sha256.h"
#include "deeptail/core.h"

namespace deeptail {
namespace {

namespace fs = std::filesystem;

std::string refusal_of_file(const std::string& path) {
  try {
    InputFile file(path);
  } catch (const InputError& e) {
    return e.what();
  }
  return "";
}

TEST(InputFile, ReadsWholeAndEmptyFiles) {
  const fs::path path = fs::temp_directory_path() / "deeptail_input_file_test";
  std::ofstream(path) << "hello";
  EXPECT_EQ(InputFile(path.string()).text(), "hello");
  std::ofstream(path, std::ios::trunc).close();
  EXPECT_TRUE(InputFile(path.string()).bytes().empty());
  fs::remove(path);
}

TEST(InputFile, RefusesWhatIsNotAFile) {
  EXPECT_THROW(InputFile("no/such/file"), InputError);
  EXPECT_THROW(InputFile(fs::temp_directory_path().string()), InputError);
  const fs::path pipe = fs::temp_directory_path() / "deeptail_input_file_pipe";
  fs::remove(pipe);
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_THROW(InputFile(pipe.string()), InputError);  // and does not wait for a writer
  fs::remove(pipe);
  EXPECT_EQ(refusal_of_file("/dev/zero"), "/dev/zero: expected a regular file, found a device");
  EXPECT_EQ(refusal_of_file(std::string("/dev/null\0.json", 15)),
            "/dev/null\\x00.json: cannot open: the name holds a NUL");
  EXPECT_THROW(sha256_of_file("/dev/zero"), InputError);
}

TEST(InputFile, KeepsWhatItReadWhenTheFileShrinks) {
  const fs::path path = fs::temp_directory_path() / "deeptail_input_file_shrinks";
  std::ofstream(path) << std::string(100'000, 'x');
  const InputFile file(path.string());
  fs::resize_file(path, 10);
  EXPECT_EQ(file.text(), std::string(100'000, 'x'));  // a mapping would end in a bus error
  fs::remove(path);
}

TEST(InputFile, GivesBackWholePagesOfAPartAlone) {
  const fs::path path = fs::temp_directory_path() / "deeptail_input_file_part";
  std::ofstream(path) << std::string(1 << 20, 'x');
  const InputFile file(path.string());
  fs::remove(path);
  const auto part = file.bytes().subspan(100, 500000);
  file.give_back(part);
  file.give_back(file.bytes().subspan(900000, 10));  // no whole page
  for (std::size_t i = 0; i < file.bytes().size(); ++i)
    if (i < 100 || i >= 500100) {
      ASSERT_EQ(file.bytes()[i], std::byte{'x'}) << i;
    }
  EXPECT_EQ(file.bytes()[250000], std::byte{0});
}

TEST(RegularFile, TellsThatAFileBecameShorter) {
  const fs::path path = fs::temp_directory_path() / "deeptail_regular_file_shrinks";
  std::ofstream(path) << std::string(1000, 'x');
  const RegularFile file(path.string());
  fs::resize_file(path, 300);
  std::vector<std::byte> out(file.size());
  EXPECT_EQ(file.read(0, out), 300u);
  try {
    file.read_all(0, out);
    FAIL();
  } catch (const InputError& e) {
    EXPECT_EQ(e.what(), path.string() +
                            ": became shorter while it was read: expected 1000 bytes, found 300; "
                            "try again when it is complete");
  }
  fs::remove(path);
}

}  // namespace
}  // namespace deeptail
