#include "core/write_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

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

// Next to its final place, since rename() is atomic only within a file system. O_EXCL rather than mkstemp:
// the file gets the permissions the user's umask asks for.
int open_neighbour(const std::string& path, std::string& temporary) {
  for (int attempt = 0; attempt < 100; ++attempt) {
    temporary = fmt::format("{}.tmp-{}-{}", path, ::getpid(), attempt);
    const int fd = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd >= 0) return fd;
    if (errno != EEXIST) break;
  }
  throw InputError("{}: cannot create: {}", path, std::strerror(errno));
}

}  // namespace

void write_file(const std::string& path, std::initializer_list<std::string_view> pieces) {
  std::string temporary;
  const int fd = open_neighbour(path, temporary);
  bool good = true;
  for (const std::string_view piece : pieces) good = good && write_all(fd, piece);
  good = good && ::fsync(fd) == 0;
  int reason = errno;
  if (::close(fd) != 0 && good) good = false, reason = errno;
  if (good && ::rename(temporary.c_str(), path.c_str()) != 0) good = false, reason = errno;
  if (good) return;
  ::unlink(temporary.c_str());
  throw InputError("{}: cannot write: {}", path, std::strerror(reason));
}

void check_writable(const std::string& path) {
  if (std::filesystem::is_directory(path))
    throw InputError("{}: cannot write: it is a folder, expected the name of a file", path);
  const std::string folder = std::filesystem::path(path).parent_path().string();
  if (::access(folder.empty() ? "." : folder.c_str(), W_OK | X_OK) != 0)
    throw InputError("{}: cannot create: {}", path, std::strerror(errno));
}

void write_file(const std::string& path, std::string_view text) { write_file(path, {text}); }

}  // namespace deeptail
