#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "deeptail/tensors.h"
#include "tensors/layout.h"

namespace deeptail {

namespace {

// A file that appears under its name only when commit() has returned; otherwise it leaves nothing behind.
// It is written next to its final place, since rename() is atomic only within a file system.
class AtomicFile {
 public:
  explicit AtomicFile(const std::string& path) : path_(path) {
    // O_EXCL rather than mkstemp: the file gets the permissions the user's umask asks for.
    for (int attempt = 0; fd_ < 0 && attempt < 100; ++attempt) {
      temporary_ = fmt::format("{}.tmp-{}-{}", path, ::getpid(), attempt);
      fd_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
      if (fd_ < 0 && errno != EEXIST) break;
    }
    if (fd_ < 0) throw InputError("{}: cannot create: {}", path_, std::strerror(errno));
  }
  ~AtomicFile() {
    if (fd_ >= 0) ::close(fd_);
    if (!committed_) ::unlink(temporary_.c_str());
  }
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      const ssize_t n = ::write(fd_, bytes.data(), bytes.size());
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) fail("write");
      bytes = bytes.subspan(static_cast<std::size_t>(n));
    }
  }

  void commit() {
    if (::fsync(fd_) != 0) fail("write");
    const int closed = ::close(fd_);
    fd_ = -1;
    if (closed != 0) fail("write");
    if (::rename(temporary_.c_str(), path_.c_str()) != 0) fail("create");
    committed_ = true;
  }

 private:
  [[noreturn]] void fail(std::string_view what) const {
    throw InputError("{}: cannot {}: {}", path_, what, std::strerror(errno));
  }

  std::string path_, temporary_;
  int fd_ = -1;
  bool committed_ = false;
};

// Version 1 header, padded so that the values start at a multiple of 64 as NumPy does.
std::string npy_header(std::span<const std::int64_t> shape) {
  const std::string dims = fmt::format("({}{})", fmt::join(shape, ", "), shape.size() == 1 ? "," : "");
  std::string dict = fmt::format("{{'descr': '<f4', 'fortran_order': False, 'shape': {}, }}", dims);
  constexpr std::size_t kPrefix = 10, kAlignment = 64;
  dict.append((kAlignment - (kPrefix + dict.size() + 1) % kAlignment) % kAlignment, ' ');
  dict += '\n';
  std::string header("\x93NUMPY\x01\x00", 8);
  header += static_cast<char>(dict.size() & 0xff);
  header += static_cast<char>(dict.size() >> 8);
  return header + dict;
}

}  // namespace

void write_npy(const std::string& path, std::span<const float> values, std::span<const std::int64_t> shape) {
  if (shape.size() > kMaxRank || byte_size(DType::kF32, shape) != values.size_bytes())
    throw std::invalid_argument(
        fmt::format("write_npy: shape {} does not hold {} values", shape_text(shape), values.size()));
  const std::string header = npy_header(shape);
  AtomicFile file(path);
  file.write(std::as_bytes(std::span(header)));
  file.write(std::as_bytes(values));
  file.commit();
}

}  // namespace deeptail
