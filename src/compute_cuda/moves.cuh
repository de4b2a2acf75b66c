// One move of every particle: the same numbers as propose_move on the CPU (estimators/tokensplit/moves.cpp),
// so the same proposals; accepted iff the margin reaches the group's level.
#pragma once

#include <Random123/philox.h>

#include "compute_cuda/particle_engine.h"
#include "compute_cuda/sample.cuh"

namespace deeptail::cuda {

// A group as the kernels see it.
struct DeviceGroup {
  std::uint64_t seed;
  std::uint32_t begin;           // place of its first particle in the batch
  std::uint32_t first_particle;  // its number within the population
  std::uint32_t level_number, first_step;
  std::uint32_t block;
  float level;
  double suffix_share, redraw_share;  // shares of suffix moves, of suffix and block moves
};

struct MoveArgs {
  SampleTables tables;
  const std::uint32_t* free;  // [n_free]: positions that can hold more than one token, ascending
  int n_free;
  const DeviceGroup* groups;
  const double* cumulative;    // [groups, length]
  const std::uint32_t* group;  // [n]: of each particle
  std::uint32_t *rows, *proposed;  // [n, length]
  const float* margin;             // [n]: of the proposals
  std::uint32_t* note;             // [n]: what was proposed
  MoveCounts* counts;              // [groups, 3, length]: by kind and first changed position
};

enum : std::uint32_t { kSingleMove = 0, kBlockMove = 1, kSuffixMove = 2, kNoMove = 3 };
inline constexpr int kMoveKinds = 3;
inline constexpr std::uint32_t kLongestSuffix = 8;

// The numbers of one move, in order.
class MoveDraws {
 public:
  __device__ MoveDraws(std::uint64_t seed, std::uint64_t index) : seed_(seed), index_(index) {}
  __device__ std::uint64_t next() {
    constexpr std::uint32_t kMoves = 4;  // Stream::kMoves
    if (slot_ % 2 == 0) {
      const r123::Philox4x32::ctr_type counter = {{static_cast<std::uint32_t>(index_),
                                                   static_cast<std::uint32_t>(index_ >> 32), slot_ / 2,
                                                   kMoves}};
      const r123::Philox4x32::key_type key = {
          {static_cast<std::uint32_t>(seed_), static_cast<std::uint32_t>(seed_ >> 32)}};
      const r123::Philox4x32::ctr_type w = r123::Philox4x32()(counter, key);
      even_ = w[0] | static_cast<std::uint64_t>(w[1]) << 32;
      odd_ = w[2] | static_cast<std::uint64_t>(w[3]) << 32;
    }
    return slot_++ % 2 == 0 ? even_ : odd_;
  }
  __device__ double unit() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }

 private:
  std::uint64_t seed_, index_, even_ = 0, odd_ = 0;
  std::uint32_t slot_ = 0;
};

// The first position whose cumulative chance is above u of the whole.
__device__ inline int pick_position(const double* cumulative, int length, double u) {
  const double wanted = u * cumulative[length - 1];
  int low = 0, high = length - 1;
  while (low < high) {
    const int middle = (low + high) / 2;
    if (cumulative[middle] > wanted)
      high = middle;
    else
      low = middle + 1;
  }
  return low;
}

// next: [length], holds where the particle is, then where it would go. Returns kind | first changed << 2, the
// kind being kNoMove when nothing changed.
__device__ inline std::uint32_t propose(const MoveArgs& a, const DeviceGroup& g, const double* cumulative,
                                        std::uint64_t index, std::uint32_t* next) {
  const int length = a.tables.length;
  MoveDraws draws(g.seed, index);
  int first = length;
  const auto redraw = [&](int position) {
    const std::uint32_t row = a.tables.first_row[position] + draw_entry(a.tables, position, draws.next());
    if (row == next[position]) return;
    next[position] = row;
    first = min(first, position);
  };
  const double chance = draws.unit();
  std::uint32_t kind = kSingleMove;
  if (chance < g.suffix_share) {
    kind = kSuffixMove;
    const std::uint32_t longest = min(kLongestSuffix, static_cast<std::uint32_t>(a.n_free));
    const std::uint32_t count =
        1 + min(static_cast<std::uint32_t>(draws.unit() * static_cast<double>(longest)), longest - 1);
    for (std::uint32_t i = 0; i < count; ++i) redraw(static_cast<int>(a.free[a.n_free - count + i]));
  } else {
    std::uint32_t count = 1;
    if (chance < g.redraw_share) kind = kBlockMove, count = g.block;
    for (std::uint32_t i = 0; i < count; ++i) redraw(pick_position(cumulative, length, draws.unit()));
  }
  return (first == length ? kNoMove : kind) | static_cast<std::uint32_t>(first) << 2;
}

inline constexpr int kMoveThreads = 256;

// A warp per particle. The first n_settle have proposals with margins: they are accepted or not. Then the
// first n_propose (at most n_settle, or there is nothing to settle) get their proposals of step `step`.
__global__ void __launch_bounds__(kMoveThreads)
    move_step(MoveArgs a, std::uint32_t n_settle, std::uint32_t n_propose, std::uint32_t step) {
  const std::uint32_t i = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
  const int lane = static_cast<int>(threadIdx.x % 32), length = a.tables.length;
  if (i >= max(n_settle, n_propose)) return;
  const std::uint32_t g_index = a.group[i];
  const DeviceGroup& g = a.groups[g_index];
  std::uint32_t *now = a.rows + static_cast<std::size_t>(i) * length,
                *next = a.proposed + static_cast<std::size_t>(i) * length;
  if (i < n_settle) {
    const std::uint32_t note = a.note[i], kind = note & 3;
    const bool accept = kind != kNoMove && a.margin[i] >= g.level;
    if (accept)
      for (int p = lane; p < length; p += 32) now[p] = next[p];
    if (lane == 0 && kind != kNoMove) {
      MoveCounts& counts =
          a.counts[(static_cast<std::size_t>(g_index) * kMoveKinds + kind) * length + (note >> 2)];
      atomicAdd(&counts.proposed, 1u);
      if (accept) atomicAdd(&counts.accepted, 1u);
    }
  }
  if (i >= n_propose) return;
  for (int p = lane; p < length; p += 32) next[p] = now[p];  // each lane wrote what it reads
  __syncwarp();
  if (lane != 0) return;
  const std::uint64_t particle = g.first_particle + (i - g.begin);
  const std::uint64_t index = static_cast<std::uint64_t>(g.level_number) << 50 |
                              static_cast<std::uint64_t>(g.first_step + step) << 24 | particle;  // step_index
  a.note[i] = propose(a, g, a.cumulative + static_cast<std::size_t>(g_index) * length, index, next);
}

}  // namespace deeptail::cuda
