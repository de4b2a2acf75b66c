// SHA-256 (FIPS 180-4): the name by which results refer to the files they were made from.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "core/block_hash.h"

namespace deeptail {

class Sha256 final : public BlockHash {
 public:
  std::string hex();  // 64 lower-case hex digits; ends the computation

 private:
  void compress(const std::byte* block) override;

  std::array<std::uint32_t, 8> state_ = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                         0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
};

std::string sha256_hex(std::span<const std::byte> bytes);
std::string sha256_hex(std::string_view text);
// Throws InputError when the file cannot be read.
std::string sha256_of_file(const std::string& path);

bool is_sha256_hex(std::string_view text);

}  // namespace deeptail
