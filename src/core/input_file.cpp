#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>

#include "core/memory.h"
#include "core/regular_file.h"
#include "deeptail/core.h"

namespace deeptail {

InputFile::InputFile(const std::string& path) : path_(path) {
  const RegularFile file(path);
  size_ = file.size();
  if (size_ == 0) return;
  check_memory(path, static_cast<double>(size_), "expected a smaller file");
  data_ = std::make_unique_for_overwrite<std::byte[]>(size_);
  file.read_all(0, {data_.get(), size_});
}

// Whole pages inside the part: they are this file's alone.
void InputFile::give_back(std::span<const std::byte> part) const {
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGE_SIZE));
  const auto first = reinterpret_cast<std::uintptr_t>(part.data());
  const std::uintptr_t begin = (first + page - 1) / page * page, end = (first + part.size()) / page * page;
  if (begin < end) ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
}

}  // namespace deeptail
