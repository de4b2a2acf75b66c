// SHA-1 (FIPS 180-4): git's name of a file's content. Not for anything that must resist an attack.
#pragma once

#include <string>

#include "core/block_hash.h"

namespace deeptail {

class Sha1 final : public BlockHash {
 public:
  std::string hex();  // 40 lower-case hex digits; ends the computation

 private:
  void compress(const std::byte* block) override;

  std::array<std::uint32_t, 5> state_ = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0};
};

}  // namespace deeptail
