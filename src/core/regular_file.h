// A file open for reading. Everything that deeptail reads is read through this class: a device, a pipe or a
// folder is refused, so that nothing is waited for or read without end.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace deeptail {

class RegularFile {
 public:
  // Throws InputError when it cannot be opened or is not a regular file.
  explicit RegularFile(const std::string& path);
  ~RegularFile();
  RegularFile(const RegularFile&) = delete;
  RegularFile& operator=(const RegularFile&) = delete;

  std::size_t size() const { return size_; }  // when it was opened

  // Fills `out` from byte `offset` on and returns how much there was: less than asked for where the file
  // ends.
  std::size_t read(std::size_t offset, std::span<std::byte> out) const;
  // The same where there must be as much. Throws InputError when the file has become shorter.
  void read_all(std::size_t offset, std::span<std::byte> out) const;

 private:
  std::string path_;
  int fd_ = -1;
  std::size_t size_ = 0;
};

}  // namespace deeptail
