#include "core/file_lock.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <optional>

#include "deeptail/core.h"

namespace deeptail {
namespace {

namespace fs = std::filesystem;

class FileLocks : public ::testing::Test {
 protected:
  FileLocks() {
    std::string pattern = (fs::temp_directory_path() / "deeptail-lock-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
  }
  ~FileLocks() override { fs::remove_all(folder_); }
  std::string folder_;
};

TEST_F(FileLocks, BytesAreLockedOneByOne) {
  using Result = LockFile::Result;
  LockFile a(folder_ + "/x"), b(folder_ + "/x");
  EXPECT_EQ(a.lock(7), Result::kLocked);
  EXPECT_EQ(b.lock(7), Result::kHeldByOther);
  EXPECT_EQ(b.lock(8), Result::kLocked);
  a.unlock(7);
  EXPECT_EQ(b.lock(7), Result::kLocked);
  EXPECT_THROW(LockFile(folder_ + "/none/x"), InputError);
}

TEST_F(FileLocks, ADeletedFileIsNoticed) {
  LockFile a(folder_ + "/x");
  EXPECT_TRUE(a.is_there());
  fs::remove(a.path());
  EXPECT_FALSE(a.is_there());
  const LockFile b(folder_ + "/x");
  EXPECT_FALSE(a.is_there());
  a.reopen();
  EXPECT_TRUE(a.is_there());
}

TEST_F(FileLocks, WorkIsForOneAtATime) {
  const std::string out = folder_ + "/out.json";
  std::optional<WorkLock> first(std::in_place, out);
  try {
    const WorkLock second(out);
    FAIL() << "both have it";
  } catch (const InputError& e) {
    EXPECT_NE(std::string(e.what()).find("another process is at work on it"), std::string::npos) << e.what();
  }
  first.reset();
  EXPECT_TRUE(fs::is_empty(folder_));
  const WorkLock third(out);
}

}  // namespace
}  // namespace deeptail
