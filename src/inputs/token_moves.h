// Which positions of an input a move draws anew: the one rule of the CPU and the device, which use the same
// numbers and so propose the same tokens.
//
// It is decided by random numbers alone, never by the input, so every move is reversible under the input law,
// and accepting iff the score reaches the level leaves the law given that invariant.
#pragma once

#include <cstdint>

#include "core/host_device.h"

namespace deeptail {

enum class MoveKind : std::uint8_t { kSingle, kBlock, kSuffix };
inline constexpr std::uint32_t kLongestSuffix = 8;  // free positions of a suffix move, at most, of inputs

// Index: the integer type of a position. Pointers, since the memory may be a device's.
template <class Index>
struct MoveRule {
  const double* cumulative;  // [length]: chance that a single move takes this position or an earlier one
  std::uint32_t length;
  const Index* free;  // [n_free]: positions that can hold more than one token, ascending
  std::uint32_t n_free;
  std::uint32_t block;                // positions of a block move
  double suffix_share, redraw_share;  // shares of suffix moves, of suffix and block moves
  std::uint32_t longest_suffix = kLongestSuffix;
};

// The first position whose cumulative chance is above u of the whole.
DEEPTAIL_HOST_DEVICE inline std::uint32_t pick_position(const double* cumulative, std::uint32_t length,
                                                        double u) {
  const double wanted = u * cumulative[length - 1];
  std::uint32_t low = 0, high = length - 1;
  while (low < high) {
    const std::uint32_t middle = (low + high) / 2;
    if (cumulative[middle] > wanted)
      high = middle;
    else
      low = middle + 1;
  }
  return low;
}

// Calls redraw(position) for every position that is drawn anew, in the order in which they take their
// numbers. draws.unit(): the next number in [0, 1).
template <class Index, class Draws, class Redraw>
DEEPTAIL_HOST_DEVICE MoveKind choose_positions(const MoveRule<Index>& rule, Draws& draws,
                                               const Redraw& redraw) {
  const double chance = draws.unit();
  if (chance < rule.suffix_share) {
    const std::uint32_t longest = rule.n_free < rule.longest_suffix ? rule.n_free : rule.longest_suffix;
    const auto wanted = static_cast<std::uint32_t>(draws.unit() * static_cast<double>(longest));
    const std::uint32_t count = wanted + 1 < longest ? wanted + 1 : longest;
    for (std::uint32_t i = 0; i < count; ++i) redraw(rule.free[rule.n_free - count + i]);
    return MoveKind::kSuffix;
  }
  const bool block = chance < rule.redraw_share;
  const std::uint32_t count = block ? rule.block : 1;
  for (std::uint32_t i = 0; i < count; ++i)
    redraw(static_cast<Index>(pick_position(rule.cumulative, rule.length, draws.unit())));
  return block ? MoveKind::kBlock : MoveKind::kSingle;
}

}  // namespace deeptail
