#include "hub/partial_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "deeptail/core.h"

namespace deeptail {

PartialFile::PartialFile(const std::filesystem::path& path) : path_(path) {
  // O_NOFOLLOW: a link in its place might lead anywhere.
  fd_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0666);
  if (fd_ < 0) fail(errno);
  struct stat info {};
  if (::fstat(fd_, &info) != 0 || !S_ISREG(info.st_mode)) {
    ::close(fd_);
    throw InputError("{}: expected a regular file, or none", path.string());
  }
  size_ = static_cast<std::uint64_t>(info.st_size);
}

PartialFile::~PartialFile() {
  if (size_ == 0 && !gone_) ::unlink(path_.c_str());
  ::close(fd_);
}

void PartialFile::fail(int reason) const {
  throw InputError("{}: cannot write: {}", path_.string(), std::strerror(reason));
}

void PartialFile::append(std::string_view piece) {
  while (!piece.empty()) {
    const ssize_t n = ::write(fd_, piece.data(), piece.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail(errno);
    piece.remove_prefix(static_cast<std::size_t>(n));
    size_ += static_cast<std::uint64_t>(n);
  }
}

void PartialFile::restart() {
  if (::ftruncate(fd_, 0) != 0) fail(errno);
  size_ = 0;
}

void PartialFile::become(const std::filesystem::path& place) {
  if (::fsync(fd_) != 0 || ::rename(path_.c_str(), place.c_str()) != 0) fail(errno);
  gone_ = true;
}

void PartialFile::remove() {
  if (!gone_) ::unlink(path_.c_str());
  gone_ = true;
}

}  // namespace deeptail
