#include "core/file_lock.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "deeptail/core.h"

namespace deeptail {

namespace {

int open_lock(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (fd < 0) throw InputError("{}: cannot open for writing: {}", path, std::strerror(errno));
  return fd;
}

int set_lock(int fd, std::uint64_t byte, int type, bool wait) {
  struct flock range {};
  range.l_type = static_cast<short>(type);
  range.l_whence = SEEK_SET;
  range.l_start = static_cast<off_t>(byte);
  range.l_len = 1;
  int result;
  do result = ::fcntl(fd, wait ? F_OFD_SETLKW : F_OFD_SETLK, &range);
  while (result != 0 && errno == EINTR);
  return result;
}

}  // namespace

LockFile::LockFile(std::string path) : path_(std::move(path)), fd_(open_lock(path_)) {}

LockFile::~LockFile() { ::close(fd_); }

LockFile::Result LockFile::lock(std::uint64_t byte, bool wait) {
  if (set_lock(fd_, byte, F_WRLCK, wait) == 0) return Result::kLocked;
  return errno == EAGAIN || errno == EACCES ? Result::kHeldByOther : Result::kNoLocks;
}

void LockFile::unlock(std::uint64_t byte) { set_lock(fd_, byte, F_UNLCK, false); }

bool LockFile::is_there() const {
  struct stat ours {
  }, there{};
  return ::fstat(fd_, &ours) == 0 && ::stat(path_.c_str(), &there) == 0 && ours.st_ino == there.st_ino &&
         ours.st_dev == there.st_dev;
}

void LockFile::reopen() {
  const int fd = open_lock(path_);
  ::close(fd_);
  fd_ = fd;
}

WorkLock::WorkLock(const std::string& out) : file_(out + ".lock") {
  for (;; file_.reopen()) {
    if (file_.lock(0) == LockFile::Result::kHeldByOther)
      throw InputError("{}: another process is at work on it; choose another file, or wait", out)
          .with_hint(Hint::kOut);
    if (file_.is_there()) return;  // else its owner ended, and deleted it, between our open and our lock
  }
}

WorkLock::~WorkLock() { ::unlink(file_.path().c_str()); }

}  // namespace deeptail
