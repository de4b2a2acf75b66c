// What a move proposes: the same numbers as redraw_parts on the CPU (estimators/tokensplit/moves.h), so the
// same tokens. Runs on the host as well, for tests.
//
// A particle's state is [length + 1] words: the rows that its positions have drawn, then the number of the
// plant that covers some of them, or kNoPlant. The model reads the rows that are seen: [length].
#pragma once

#include "compute_cuda/keyed_numbers.cuh"
#include "compute_cuda/tokens/input_tables.cuh"
#include "inputs/token_moves.h"

namespace deeptail::cuda {

// A DenseBase where the kernels find it.
struct MoveTables {
  SampleTables sample;        // tables: [parts]
  const std::uint32_t* free;  // [n_free]: parts that can change anything, ascending
  std::uint32_t n_free;
  const DensePlant* plants;  // null: none
  __host__ __device__ std::uint32_t length() const { return static_cast<std::uint32_t>(sample.length); }
  __host__ __device__ std::uint32_t n_parts() const { return length() + (plants == nullptr ? 0 : 1); }
};

// A group as the kernels see it.
struct DeviceGroup {
  std::uint64_t seed;
  MoveTables base;
  std::uint32_t begin;           // place of its first particle in the batch
  std::uint32_t first_particle;  // its number within the population
  std::uint32_t level_number, first_step;
  std::uint32_t block;
  float level;
  double suffix_share, redraw_share;  // shares of suffix moves, of suffix and block moves
};

inline constexpr std::uint32_t kNoMove = 3;  // in the place of a MoveKind: nothing seen changed

// What was proposed.
struct MoveNote {
  std::uint32_t kind;      // a MoveKind or kNoMove
  std::uint32_t part;      // the first that was drawn anew
  std::uint32_t position;  // the first that changed; length: none
};

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

__host__ __device__ inline DensePlant plant_of(const MoveTables& t, const std::uint32_t* state) {
  const std::uint32_t number = state[t.length()];
  return number == kNoPlant ? DensePlant{} : t.plants[number];
}
// The row that is seen at a position of a state with this plant.
__host__ __device__ inline std::uint32_t seen_row(const DensePlant& plant, const std::uint32_t* state,
                                                  std::uint32_t position) {
  for (int i = 0; i < kMostPlanted; ++i)
    if (position == plant.position[i]) return plant.row[i];
  return state[position];
}

// state: [length + 1], holds where the particle is, then where it would go; rows: [length], what is seen of it.
__host__ __device__ inline MoveNote propose(const DeviceGroup& g, const double* cumulative,
                                            std::uint64_t index, std::uint32_t* state, std::uint32_t* rows) {
  const MoveTables& t = g.base;
  const std::uint32_t length = t.length();
  const MoveRule<std::uint32_t> rule = {cumulative, t.n_parts(),    t.free,        t.n_free,
                                        g.block,    g.suffix_share, g.redraw_share};
  MoveDraws draws(g.seed, index);
  DensePlant plant = plant_of(t, state);
  MoveNote note = {kNoMove, length + 1, length};
  const auto show = [&](std::uint32_t position) {
    if (position == kNowhere) return;
    const std::uint32_t row = seen_row(plant, state, position);
    if (row == rows[position]) return;
    rows[position] = row;
    if (position < note.position) note.position = position;
  };
  const MoveKind kind = choose_positions(rule, draws, [&](std::uint32_t part) {
    if (part < note.part) note.part = part;
    const std::uint32_t entry = draw_entry(t.sample, static_cast<int>(part), draws.next());
    if (part < length) {
      state[part] = t.sample.first_row[part] + entry;
      return show(part);
    }
    const DensePlant before = plant;
    state[length] = entry;
    plant = plant_of(t, state);
    for (int i = 0; i < kMostPlanted; ++i) show(before.position[i]), show(plant.position[i]);
  });
  if (note.position < length) note.kind = static_cast<std::uint32_t>(kind);
  return note;
}

}  // namespace deeptail::cuda
