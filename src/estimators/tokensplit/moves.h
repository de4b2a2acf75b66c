// Moves of an input under its own law: some of the numbers that it is made from (inputs/token_moves.h) are
// drawn anew.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "core/random.h"
#include "deeptail/event.h"
#include "inputs/token_moves.h"

namespace deeptail {

// How the particles of one level move. Chosen by the pilot, frozen for the replicas.
struct MoveSettings {
  std::size_t n_moves = 64;  // per particle
  // [parts]: chance that a single move takes this part or an earlier one.
  std::vector<double> cumulative = {};
  std::size_t block = 1;      // parts of a block move
  double block_share = 0.0;   // of moves that take a block
  double suffix_share = 0.0;  // of moves that draw everything from some part on
  std::size_t longest_suffix = kLongestSuffix;
  double crossing_share = 0.0;  // of moves that draw anew from a crossing on, where an event has crossings
  ScoreHints hints = {};
};

// cumulative for chances proportional to weights: [parts]; a part with weight 0 is never taken.
std::vector<double> cumulative_of(std::span<const double> weights);

// Moves [first, first + count) of a level.
struct MoveRound {
  double level;
  std::size_t level_number, first, count;
  const MoveSettings& settings;
  std::uint64_t seed;
};

// Proposals and acceptances at one part (single moves) or of one kind. Proposals that changed nothing are not
// among them.
struct Tally {
  double proposed = 0.0, accepted = 0.0;
  double acceptance() const { return (accepted + 1.0) / (proposed + 2.0); }
};
struct MoveTally {
  std::vector<Tally> single = {};  // [parts]
  Tally block = {}, suffix = {}, crossing = {};
  Tally& of(MoveKind kind, std::size_t part) {
    return kind == MoveKind::kSingle ? single[part] : kind == MoveKind::kBlock ? block : suffix;
  }
};

// Which numbers a move uses.
struct MoveIndex {
  std::uint64_t seed, index;  // index: step_index
};

// The numbers of one move, in order.
class MoveDraws {
 public:
  explicit MoveDraws(MoveIndex at) : at_(at) {}
  std::uint64_t next() {
    if (slot_ % 2 == 0) pair_ = uniform64_pair({at_.seed, Stream::kMoves}, at_.index, slot_ / 2);
    return pair_[slot_++ % 2];
  }
  double unit() { return unit_double(next()); }

 private:
  MoveIndex at_;
  std::uint32_t slot_ = 0;
  std::array<std::uint64_t, 2> pair_{};
};

// A move that draws an answer anew from where it crosses the level: the crossing's own number among those that cross it too, all
// later ones freely. That is the law of these numbers given the earlier ones and the level, so it is always accepted.
// Calls redraw(number of the answer, 64-bit number).
template <class Redraw>
void redraw_from(const Crossing& crossing, std::size_t n_numbers, MoveIndex at, const Redraw& redraw) {
  MoveDraws draws(at);
  if (crossing.share < 1.0)
    redraw(crossing.number, static_cast<std::uint64_t>(std::ldexp(draws.unit() * crossing.share, 64)));
  else
    redraw(crossing.number, draws.next());
  for (std::size_t t = crossing.number + 1; t < n_numbers; ++t) redraw(t, draws.next());
}

// Calls redraw(part, number) for every part that the move draws anew. free: the parts that can change
// anything, ascending.
template <class Redraw>
MoveKind redraw_parts(std::span<const std::size_t> free, const MoveSettings& settings, MoveIndex at,
                      const Redraw& redraw) {
  const MoveRule<std::size_t> rule = {.cumulative = settings.cumulative.data(),
                                      .length = static_cast<std::uint32_t>(settings.cumulative.size()),
                                      .free = free.data(),
                                      .n_free = static_cast<std::uint32_t>(free.size()),
                                      .block = static_cast<std::uint32_t>(settings.block),
                                      .suffix_share = settings.suffix_share,
                                      .redraw_share = settings.suffix_share + settings.block_share,
                                      .longest_suffix = static_cast<std::uint32_t>(settings.longest_suffix)};
  MoveDraws draws(at);
  return choose_positions(rule, draws, [&](std::size_t part) { redraw(part, draws.next()); });
}

}  // namespace deeptail
