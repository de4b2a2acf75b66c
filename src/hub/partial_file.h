// A file that grows over several attempts and appears under its name when it is whole.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace deeptail {

class PartialFile {
 public:
  // Opens what an earlier attempt left, or makes it. Only one process may have it: the caller holds a lock.
  explicit PartialFile(const std::filesystem::path& path);
  ~PartialFile();  // an empty one is removed
  PartialFile(const PartialFile&) = delete;
  PartialFile& operator=(const PartialFile&) = delete;

  std::uint64_t size() const { return size_; }
  const std::filesystem::path& path() const { return path_; }
  void append(std::string_view piece);              // throws InputError when the disk does not take it
  void restart();                                   // empty again
  void become(const std::filesystem::path& place);  // on the disk, then renamed
  void remove();

 private:
  [[noreturn]] void fail(int reason) const;

  std::filesystem::path path_;
  int fd_ = -1;
  std::uint64_t size_ = 0;
  bool gone_ = false;
};

}  // namespace deeptail
