// Problems built to lose modes: locks of two or three tokens with chosen priors and chosen chances. Each is
// what a transformer with one attention layer can compute (a row chosen by a few positions, and a linear
// score of the others), as a plain function.
#pragma once

#include "problem.h"

namespace deeptail::modes {

// What the lock does with inputs that agree with a mode in some of its tokens.
struct Stage {
  double slope = 1.0, chance = 0.0;  // of the event
};
struct Mode {
  std::vector<TokenId> tokens;  // at the lock's positions
  std::vector<Stage> stages;    // [positions]: one token agrees, two, .. all
};
struct LockSpec {
  std::vector<std::size_t> positions;
  std::vector<Mode> modes;  // no two share a token at a position
  Stage none;               // no token agrees with any
};
// An input's mode is the one that most of its tokens agree with, the first of several.
Lock token_lock(const Distribution& dist, const ContextSum& context, const LockSpec& spec);

// Positions of one table with a fixed first token; kPeaked: 16 tokens have most of the mass, others 1e-3 and
// less; kWide: 1000 tokens by Zipf's law.
enum class Tables { kPeaked, kWide };
Distribution constructed_law(Tables tables, std::size_t n_free);

// Families dominant, fifty, late, decoy, third, middle; and needle, which nothing leads to.
Problems constructed_problems();

}  // namespace deeptail::modes
