#include "core/write_file.h"
#include "deeptail/tensors.h"
#include "tensors/byte_reader.h"
#include "tensors/layout.h"

namespace deeptail {

namespace {

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
  write_file(path, {header, as_text(std::as_bytes(values))});
}

}  // namespace deeptail
