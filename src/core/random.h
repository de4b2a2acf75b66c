// Counter-based random numbers: Philox4x32-10 (Salmon et al. 2011, through Random123). A number is a pure
// function of where it is used, so results do not depend on threads, order or shards.
//
// Layout (philox_block), the same on every backend to the bit:
//   key     = { seed low 32 bits, seed high 32 bits }
//   counter = { index low 32 bits, index high 32 bits, slot / 2, stream }
//   output words w0..w3: slot even -> w0 | w1 << 32, slot odd -> w2 | w3 << 32
// So one evaluation serves two neighbouring slots.
#pragma once

#include <array>
#include <cstdint>

#include "core/host_device.h"

namespace deeptail {

// What the numbers are for. Different purposes never share a counter.
enum class Stream : std::uint32_t {
  kInputs = 1,       // index: sample, slot: position
  kResample = 2,     // index: level, slot: particle
  kSeeds = 3,        // index: which part of a run; gives the part a seed of its own
  kMoves = 4,        // index: step_index, slot: draw
  kTilted = 5,       // index: sample, slot: position (itgis)
  kChains = 6,       // index: step_index, slot 0: position, 1: token, 2: acceptance (mhis)
  kBranches = 7,     // index: branch, slot: step; the seed is made from a text's own numbers
  kProjection = 15,  // index: step
  // Priors; index: particle, slot: dimension.
  kPriorNormals = 16,
  kPriorSquares = 17,
  kPriorExponentials = 18,
  kPriorStart = 19,  // slot 0: which activation to start from, slot 1: which group
  // Moves of continuous particles; index: level, step and particle, slot: dimension.
  kMoveNormals = 24,
  kMoveAccept = 25,  // slot 0: acceptance, slot 1: group
  kMixing = 26,
};

struct RngKey {
  std::uint64_t seed;
  Stream stream;
};

// What Philox is given for slots 2 * block and 2 * block + 1.
struct PhiloxBlock {
  std::uint32_t counter[4], key[2];
};
DEEPTAIL_HOST_DEVICE inline PhiloxBlock philox_block(RngKey key, std::uint64_t index, std::uint32_t block) {
  return {{static_cast<std::uint32_t>(index), static_cast<std::uint32_t>(index >> 32), block,
           static_cast<std::uint32_t>(key.stream)},
          {static_cast<std::uint32_t>(key.seed), static_cast<std::uint32_t>(key.seed >> 32)}};
}

// Philox4x32-10 itself.
std::array<std::uint32_t, 4> philox(const std::array<std::uint32_t, 4>& counter,
                                    const std::array<std::uint32_t, 2>& key);

// Slots 2 * block and 2 * block + 1.
std::array<std::uint64_t, 2> uniform64_pair(RngKey key, std::uint64_t index, std::uint32_t block);

// Uniform on all 64-bit integers.
inline std::uint64_t uniform64(RngKey key, std::uint64_t index, std::uint32_t slot) {
  return uniform64_pair(key, index, slot / 2)[slot % 2];
}

// Where a number of an algorithm with levels is used: the index for its level, step within it and particle.
// Room for 2^14 levels, 2^26 steps and 2^24 particles.
DEEPTAIL_HOST_DEVICE inline std::uint64_t step_index(std::uint64_t level, std::uint64_t step,
                                                     std::uint64_t particle) {
  return level << 50 | step << 24 | particle;
}

// In [0, 1), from the top 53 bits.
DEEPTAIL_HOST_DEVICE inline double unit_double(std::uint64_t u) {
  return static_cast<double>(u >> 11) * 0x1.0p-53;
}

}  // namespace deeptail
