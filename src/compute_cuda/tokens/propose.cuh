// What a move proposes: the same numbers as redraw_parts on the CPU (estimators/tokensplit/moves.h), so the
// same tokens. Runs on the host as well, for tests.
#pragma once

#include "compute_cuda/keyed_numbers.cuh"
#include "compute_cuda/tokens/input_tables.cuh"
#include "inputs/token_moves.h"

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

inline constexpr std::uint32_t kNoMove = 3;  // in the place of a MoveKind: nothing changed

// The numbers of one move, in order.
class MoveDraws {
 public:
  __host__ __device__ MoveDraws(std::uint64_t seed, std::uint64_t index) : key_{seed, index} {}
  __host__ __device__ std::uint64_t next() {
    if (slot_ % 2 == 0) words_ = keyed_words(key_, Stream::kMoves, slot_ / 2);
    return slot_++ % 2 == 0 ? even_slot(words_) : odd_slot(words_);
  }
  __host__ __device__ double unit() { return unit_double(next()); }

 private:
  NumberKey key_;
  r123::Philox4x32::ctr_type words_;
  std::uint32_t slot_ = 0;
};

// next: [length], holds where the particle is, then where it would go. Returns kind | first changed << 2, the
// kind being kNoMove when nothing changed.
__host__ __device__ inline std::uint32_t propose(const MoveTables& t, const DeviceGroup& g,
                                                 const double* cumulative, std::uint64_t index,
                                                 std::uint32_t* next) {
  const auto length = static_cast<std::uint32_t>(t.sample.length);
  const MoveRule<std::uint32_t> rule = {cumulative, length,         t.free,        t.n_free,
                                        g.block,    g.suffix_share, g.redraw_share};
  MoveDraws draws(g.seed, index);
  std::uint32_t first = length;
  const MoveKind kind = choose_positions(rule, draws, [&](std::uint32_t position) {
    const std::uint32_t row =
        t.sample.first_row[position] + draw_entry(t.sample, static_cast<int>(position), draws.next());
    if (row == next[position]) return;
    next[position] = row;
    if (position < first) first = position;
  });
  return (first == length ? kNoMove : static_cast<std::uint32_t>(kind)) | first << 2;
}

}  // namespace deeptail::cuda
