// A cursor over little-endian bytes. Reading past the end is an InputError that names the file, the offset
// and the field, so the readers state what they expect and never check lengths by hand.
#pragma once

#include <bit>
#include <concepts>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

#include "deeptail/core.h"

namespace deeptail {

static_assert(std::endian::native == std::endian::little, "tensor files are little endian and used in place");

template <class T>
T load(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof(T));
  return value;
}

inline std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

class ByteReader {
 public:
  ByteReader(std::span<const std::byte> bytes, std::string_view where, std::size_t offset = 0)
      : bytes_(bytes), where_(where), offset_(offset) {
    if (offset > bytes.size())
      throw InputError("{}: points to offset {}, beyond the end at {}", where, offset, bytes.size());
  }

  const std::string& where() const { return where_; }
  std::size_t offset() const { return offset_; }
  std::size_t remaining() const { return bytes_.size() - offset_; }

  std::span<const std::byte> take(std::uint64_t n, std::string_view what) {
    if (n > remaining())
      throw InputError("{}: truncated at offset {}: {} needs {} bytes, {} are left", where_, offset_, what, n,
                       remaining());
    const auto taken = bytes_.subspan(offset_, n);
    offset_ += n;
    return taken;
  }
  std::string_view text(std::uint64_t n, std::string_view what) { return as_text(take(n, what)); }

  // Up to the next '\n', which is consumed but not returned.
  std::string_view line(std::string_view what) {
    const auto rest = as_text(bytes_.subspan(offset_));
    const auto end = rest.find('\n');
    if (end == std::string_view::npos)
      throw InputError("{}: truncated at offset {}: {} has no end of line", where_, offset_, what);
    offset_ += end + 1;
    return rest.substr(0, end);
  }

  template <class T>
  requires std::integral<T> || std::floating_point<T> T read(std::string_view what) {
    return load<T>(take(sizeof(T), what).data());
  }

 private:
  std::span<const std::byte> bytes_;
  std::string where_;
  std::size_t offset_;
};

}  // namespace deeptail
