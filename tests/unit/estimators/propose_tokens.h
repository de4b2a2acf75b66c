// A move of a token sequence, position by position: what devices propose, and the twin of moving the numbers
// of a law.
#pragma once

#include <algorithm>
#include <span>

#include "deeptail/inputs.h"
#include "estimators/tokensplit/moves.h"

namespace deeptail {

struct TokenMove {
  MoveKind kind = MoveKind::kSingle;
  std::size_t first = 0;  // first position that changed
  bool changed = false;
};

// tokens: [length], in: where the particle is, out: where it would go.
inline TokenMove propose_tokens(const Distribution& dist, std::span<const std::size_t> free,
                                const MoveSettings& settings, MoveIndex at, std::span<TokenId> tokens) {
  TokenMove move{.first = tokens.size()};
  move.kind = redraw_parts(free, settings, at, [&](std::size_t position, std::uint64_t number) {
    const TokenId token = dist.table(position).draw(number);
    if (token == tokens[position]) return;
    tokens[position] = token;
    move.changed = true;
    move.first = std::min(move.first, position);
  });
  return move;
}

}  // namespace deeptail
