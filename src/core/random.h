// Counter-based random numbers: Philox4x32-10 (Salmon et al. 2011, through Random123). A number is a pure
// function of where it is used, so results do not depend on threads, order or shards.
//
// Layout, which every backend repeats to the bit:
//   key     = { seed low 32 bits, seed high 32 bits }
//   counter = { index low 32 bits, index high 32 bits, slot / 2, stream }
//   output words w0..w3: slot even -> w0 | w1 << 32, slot odd -> w2 | w3 << 32
// So one evaluation serves two neighbouring slots.
#pragma once

#include <Random123/philox.h>

#include <array>
#include <cstdint>

namespace deeptail {

// What the numbers are for. Different purposes never share a counter.
enum class Stream : std::uint32_t {
  kInputs = 1,  // index: sample, slot: position
};

struct RngKey {
  std::uint64_t seed;
  Stream stream;
};

// Slots 2 * block and 2 * block + 1.
inline std::array<std::uint64_t, 2> uniform64_pair(RngKey key, std::uint64_t index, std::uint32_t block) {
  const auto low = [](std::uint64_t x) { return static_cast<std::uint32_t>(x); };
  const auto high = [](std::uint64_t x) { return static_cast<std::uint32_t>(x >> 32); };
  const r123::Philox4x32::ctr_type counter = {
      {low(index), high(index), block, static_cast<std::uint32_t>(key.stream)}};
  const r123::Philox4x32::key_type words = {{low(key.seed), high(key.seed)}};
  const r123::Philox4x32::ctr_type w = r123::Philox4x32()(counter, words);
  return {w[0] | std::uint64_t{w[1]} << 32, w[2] | std::uint64_t{w[3]} << 32};
}

// Uniform on all 64-bit integers.
inline std::uint64_t uniform64(RngKey key, std::uint64_t index, std::uint32_t slot) {
  return uniform64_pair(key, index, slot / 2)[slot % 2];
}

}  // namespace deeptail
