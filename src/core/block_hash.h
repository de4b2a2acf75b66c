// What SHA-1 and SHA-256 share (FIPS 180-4): blocks of 64 bytes, the last ones padded with the length.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace deeptail {

class BlockHash {
 public:
  virtual ~BlockHash() = default;
  void add(std::span<const std::byte> bytes);

 protected:
  void pad();  // ends the computation
  static std::uint32_t big_endian(const std::byte* p);

 private:
  virtual void compress(const std::byte* block) = 0;

  std::array<std::byte, 64> pending_{};
  std::uint64_t n_bytes_ = 0;
};

// n lower-case hex digits?
bool is_hex(std::string_view text, std::size_t n);

}  // namespace deeptail
