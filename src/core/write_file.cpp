#include "core/write_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <vector>

#include "deeptail/core.h"

namespace deeptail {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kTemporary = ".tmp-";  // then the process's number

// Where the file is to be: links are followed, so that they stay. Throws where something else than a regular
// file is in the way: a rename would replace a device or a pipe.
std::string place_of(const std::string& path) {
  if (path.empty()) throw InputError("cannot write: expected the name of a file, found an empty one");
  constexpr int kMostLinks = 40;  // as Linux follows
  std::error_code error;
  fs::path place = path;
  for (int n = 0; n < kMostLinks && fs::is_symlink(fs::symlink_status(place, error)); ++n)
    place = place.parent_path() / fs::read_symlink(place, error);
  const fs::file_status found = fs::status(place, error);
  if (fs::is_directory(found))
    throw InputError("{}: cannot write: it is a folder, expected the name of a file", path);
  if (fs::exists(found) && !fs::is_regular_file(found))
    throw InputError("{}: cannot write: it is neither a regular file nor a new one", path);
  if (!fs::status_known(found)) throw InputError("{}: cannot create: {}", path, error.message());
  return place.string();
}

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
int open_neighbour(const std::string& path, const std::string& place, std::string& temporary) {
  for (int attempt = 0; attempt < 100; ++attempt) {
    temporary = fmt::format("{}{}{}-{}", place, kTemporary, ::getpid(), attempt);
    const int fd = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd >= 0) return fd;
    if (errno != EEXIST) break;
  }
  throw InputError("{}: cannot create: {}", path, std::strerror(errno));
}

}  // namespace

void write_file(const std::string& path, std::initializer_list<std::string_view> pieces) {
  std::string temporary;
  const std::string place = place_of(path);
  const int fd = open_neighbour(path, place, temporary);
  bool good = true;
  for (const std::string_view piece : pieces) good = good && write_all(fd, piece);
  good = good && ::fsync(fd) == 0;
  int reason = errno;
  if (::close(fd) != 0 && good) good = false, reason = errno;
  if (good && ::rename(temporary.c_str(), place.c_str()) != 0) good = false, reason = errno;
  if (good) return;
  ::unlink(temporary.c_str());
  throw InputError("{}: cannot write: {}", path, std::strerror(reason));
}

void remove_unfinished(const std::string& path) {
  const fs::path place = place_of(path);
  const std::string start = place.filename().string() + std::string(kTemporary);
  std::error_code error;
  std::vector<fs::path> found;
  const fs::path folder = place.has_parent_path() ? place.parent_path() : ".";
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error))
    if (entry->path().filename().string().starts_with(start)) found.push_back(entry->path());
  for (const fs::path& file : found) fs::remove(file, error);
}

void check_writable(const std::string& path) {
  std::string temporary;
  ::close(open_neighbour(path, place_of(path), temporary));
  ::unlink(temporary.c_str());
}

void make_folder(const std::string& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error || !fs::is_directory(folder, error))
    throw InputError("{}: cannot create the folder: {}", folder, error ? error.message() : "there is a file");
}

void check_distinct(const std::string& a, const std::string& b) {
  std::error_code error;
  const auto whole = [&](const std::string& path) {
    return fs::weakly_canonical(fs::absolute(place_of(path)), error);
  };
  if (whole(a) == whole(b)) throw InputError("{} and {}: the same file; expected two", a, b);
}

void write_file(const std::string& path, std::string_view text) { write_file(path, {text}); }

}  // namespace deeptail
