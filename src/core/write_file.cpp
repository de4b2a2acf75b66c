#include "core/write_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "deeptail/core.h"

namespace deeptail {

namespace {

bool write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = ::write(fd, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return false;
    text.remove_prefix(static_cast<std::size_t>(n));
  }
  return true;
}

}  // namespace

void write_file(const std::string& path, std::string_view text) {
  const std::string temporary = fmt::format("{}.tmp-{}", path, ::getpid());
  const int fd = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (fd < 0) throw InputError("{}: cannot create: {}", path, std::strerror(errno));
  bool good = write_all(fd, text) && ::fsync(fd) == 0;
  int reason = errno;
  if (::close(fd) != 0 && good) good = false, reason = errno;
  if (good && ::rename(temporary.c_str(), path.c_str()) != 0) good = false, reason = errno;
  if (good) return;
  ::unlink(temporary.c_str());
  throw InputError("{}: cannot write: {}", path, std::strerror(reason));
}

}  // namespace deeptail
