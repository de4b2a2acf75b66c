// Moves of a token sequence under its own law: some positions (inputs/token_moves.h) are drawn anew from
// their tables.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "deeptail/inputs.h"
#include "inputs/token_moves.h"

namespace deeptail {

// How the particles of one level move. Chosen by the pilot, frozen for the replicas.
struct MoveSettings {
  std::size_t n_moves = 64;  // per particle
  std::vector<double> cumulative =
      {};                     // [length]: chance that a single move takes this position or an earlier one
  std::size_t block = 1;      // positions of a block move
  double block_share = 0.0;   // of moves that take a block
  double suffix_share = 0.0;  // of moves that draw everything from some position on
  std::vector<TokenId> winners = {};  // tokens that beat the target most often here, for MarginTest
};

// cumulative for chances proportional to weights: [length]; a position with weight 0 is never taken.
std::vector<double> cumulative_of(std::span<const double> weights);

struct Move {
  MoveKind kind = MoveKind::kSingle;
  std::size_t first = 0;  // first position drawn anew
  bool changed = false;   // some token differs
};

// Which numbers a move uses.
struct MoveIndex {
  std::uint64_t seed, index;  // index: step_index
};

// tokens: [length], in: where the particle is, out: where it would go.
Move propose_move(const Distribution& dist, std::span<const std::size_t> free, const MoveSettings& settings,
                  MoveIndex at, std::span<TokenId> tokens);

}  // namespace deeptail
