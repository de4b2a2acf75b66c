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

}  // namespace deeptail
