// A move of a token sequence, position by position: what devices propose, and the twin of moving the numbers
// of a law.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "estimators/tokensplit/moves.h"
#include "inputs/planted_tables.h"

namespace deeptail {

struct TokenMove {
  MoveKind kind = MoveKind::kSingle;
  std::size_t part = 0;   // the first that was drawn anew
  std::size_t first = 0;  // first position that changed
  bool changed = false;
};

// The positions' own tokens, and which plant covers some of them.
struct TokenState {
  std::vector<TokenId> own;
  std::size_t plant = 0;
  // plants: null where nothing is planted.
  std::vector<TokenId> seen(const PlantList* plants) const {
    std::vector<TokenId> tokens = own;
    if (plants == nullptr) return tokens;
    plants->plants[plant].write(tokens);
    return tokens;
  }
};

// state: in: where the particle is, out: where it would go.
inline TokenMove propose_state(const Distribution& dist, const PlantList* plants,
                               std::span<const std::size_t> free, const MoveSettings& settings, MoveIndex at,
                               TokenState& state) {
  const std::size_t length = dist.length();
  TokenMove move{.part = length + 1, .first = length};
  std::vector<TokenId> before = state.seen(plants);
  move.kind = redraw_parts(free, settings, at, [&](std::size_t part, std::uint64_t number) {
    move.part = std::min(move.part, part);
    if (part < length)
      state.own[part] = dist.table(part).draw(number);
    else
      state.plant = static_cast<std::size_t>(plants->chances.draw(number));
    const std::vector<TokenId> now = state.seen(plants);
    const auto differs = std::mismatch(before.begin(), before.end(), now.begin()).first - before.begin();
    move.first = std::min(move.first, static_cast<std::size_t>(differs));
    before = now;
  });
  move.changed = move.first < length;
  return move;
}

// tokens: [length], likewise, where nothing is planted.
inline TokenMove propose_tokens(const Distribution& dist, std::span<const std::size_t> free,
                                const MoveSettings& settings, MoveIndex at, std::span<TokenId> tokens) {
  TokenState state{.own = {tokens.begin(), tokens.end()}};
  const TokenMove move = propose_state(dist, nullptr, free, settings, at, state);
  std::copy(state.own.begin(), state.own.end(), tokens.begin());
  return move;
}

}  // namespace deeptail
