#include "core/random.h"

#include <Random123/philox.h>

namespace deeptail {

std::array<std::uint32_t, 4> philox(const std::array<std::uint32_t, 4>& counter,
                                    const std::array<std::uint32_t, 2>& key) {
  const r123::Philox4x32::ctr_type w =
      r123::Philox4x32()({{counter[0], counter[1], counter[2], counter[3]}}, {{key[0], key[1]}});
  return {w[0], w[1], w[2], w[3]};
}

std::array<std::uint64_t, 2> uniform64_pair(RngKey key, std::uint64_t index, std::uint32_t block) {
  const PhiloxBlock b = philox_block(key, index, block);
  const auto w = philox({b.counter[0], b.counter[1], b.counter[2], b.counter[3]}, {b.key[0], b.key[1]});
  return {w[0] | std::uint64_t{w[1]} << 32, w[2] | std::uint64_t{w[3]} << 32};
}

}  // namespace deeptail
