#include "core/regular_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "core/json.h"
#include "deeptail/core.h"

namespace deeptail {

namespace {
constexpr std::size_t kMostAtOnce = std::size_t{1} << 30;  // Linux reads at most 2 GiB in one call

std::string_view kind_of(mode_t mode) {
  if (S_ISDIR(mode)) return "a folder";
  if (S_ISCHR(mode) || S_ISBLK(mode)) return "a device";
  if (S_ISFIFO(mode)) return "a pipe";
  return "a socket";
}
}  // namespace

RegularFile::RegularFile(const std::string& path) : path_(path) {
  if (path.find('\0') != std::string::npos)  // the system would take what is before it for the name
    throw InputError("{}: cannot open: the name holds a NUL", printable(path));
  // O_NONBLOCK: opening a named pipe must not wait for a writer; it is refused below.
  fd_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd_ < 0) throw InputError("{}: cannot open: {}", path, std::strerror(errno));
  struct stat info {};
  const int result = ::fstat(fd_, &info);
  const int why = errno;
  if (result == 0 && S_ISREG(info.st_mode)) {
    size_ = static_cast<std::size_t>(info.st_size);
    return;
  }
  ::close(fd_);
  if (result != 0) throw InputError("{}: cannot stat: {}", path, std::strerror(why));
  throw InputError("{}: expected a regular file, found {}", path, kind_of(info.st_mode));
}

RegularFile::~RegularFile() { ::close(fd_); }

std::size_t RegularFile::read(std::size_t offset, std::span<std::byte> out) const {
  std::size_t done = 0;
  while (done < out.size()) {
    const std::size_t wanted = std::min(out.size() - done, kMostAtOnce);
    const ssize_t n = ::pread(fd_, out.data() + done, wanted, static_cast<off_t>(offset + done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw InputError("{}: cannot read: {}", path_, std::strerror(errno));
    if (n == 0) break;
    done += static_cast<std::size_t>(n);
  }
  return done;
}

void RegularFile::read_all(std::size_t offset, std::span<std::byte> out) const {
  if (const std::size_t n = read(offset, out); n < out.size())
    throw InputError(
        "{}: became shorter while it was read: expected {} bytes, found {}; try again when it is complete",
        path_, offset + out.size(), offset + n);
}

}  // namespace deeptail
