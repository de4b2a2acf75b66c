// What a move proposes: the same numbers as propose_move on the CPU (estimators/tokensplit/moves.cpp), so the
// same tokens. Runs on the host as well, for tests.
#pragma once

#include <Random123/philox.h>

#include "compute_cuda/input_tables.cuh"

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

// What can be proposed.
struct MoveTables {
  SampleTables sample;
  const std::uint32_t* free;  // [n_free]: positions that can hold more than one token, ascending
  std::uint32_t n_free;
};

enum : std::uint32_t { kSingleMove = 0, kBlockMove = 1, kSuffixMove = 2, kNoMove = 3 };
inline constexpr int kMoveKinds = 3;
inline constexpr std::uint32_t kLongestSuffix = 8;

// The numbers of one move, in order.
class MoveDraws {
 public:
  __host__ __device__ MoveDraws(std::uint64_t seed, std::uint64_t index) : seed_(seed), index_(index) {}
  __host__ __device__ std::uint64_t next() {
    constexpr std::uint32_t kMoves = 4;  // Stream::kMoves
    if (slot_ % 2 == 0) {
      const r123::Philox4x32::ctr_type counter = {
          {static_cast<std::uint32_t>(index_), static_cast<std::uint32_t>(index_ >> 32), slot_ / 2, kMoves}};
      const r123::Philox4x32::key_type key = {
          {static_cast<std::uint32_t>(seed_), static_cast<std::uint32_t>(seed_ >> 32)}};
      const r123::Philox4x32::ctr_type w = r123::Philox4x32()(counter, key);
      even_ = w[0] | static_cast<std::uint64_t>(w[1]) << 32;
      odd_ = w[2] | static_cast<std::uint64_t>(w[3]) << 32;
    }
    return slot_++ % 2 == 0 ? even_ : odd_;
  }
  __host__ __device__ double unit() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }

 private:
  std::uint64_t seed_, index_, even_ = 0, odd_ = 0;
  std::uint32_t slot_ = 0;
};

// The first position whose cumulative chance is above u of the whole.
__host__ __device__ inline int pick_position(const double* cumulative, int length, double u) {
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
__host__ __device__ inline std::uint32_t propose(const MoveTables& t, const DeviceGroup& g,
                                                 const double* cumulative, std::uint64_t index,
                                                 std::uint32_t* next) {
  const int length = t.sample.length;
  MoveDraws draws(g.seed, index);
  int first = length;
  const auto redraw = [&](int position) {
    const std::uint32_t row = t.sample.first_row[position] + draw_entry(t.sample, position, draws.next());
    if (row == next[position]) return;
    next[position] = row;
    if (position < first) first = position;
  };
  const double chance = draws.unit();
  std::uint32_t kind = kSingleMove;
  if (chance < g.suffix_share) {
    kind = kSuffixMove;
    const std::uint32_t longest = t.n_free < kLongestSuffix ? t.n_free : kLongestSuffix;
    const auto wanted = static_cast<std::uint32_t>(draws.unit() * static_cast<double>(longest));
    const std::uint32_t count = wanted + 1 < longest ? wanted + 1 : longest;
    for (std::uint32_t i = 0; i < count; ++i) redraw(static_cast<int>(t.free[t.n_free - count + i]));
  } else {
    std::uint32_t count = 1;
    if (chance < g.redraw_share) kind = kBlockMove, count = g.block;
    for (std::uint32_t i = 0; i < count; ++i) redraw(pick_position(cumulative, length, draws.unit()));
  }
  return (first == length ? kNoMove : kind) | static_cast<std::uint32_t>(first) << 2;
}

}  // namespace deeptail::cuda
