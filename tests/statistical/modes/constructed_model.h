// A constructed problem as weights: a transformer of one layer whose next token is kTarget iff the problem's
// event happens.
//
// Features lie along orthonormal directions whose components sum to 0, so norms take no mean out; embeddings have
// one length, so the first norm only scales. At the last position
//   one head for each position brings its token's units, or the code of a token of the lock;
//   the MLP computes the score as a sum of hinges (lock_neurons.h), which are GELUs far from their bend;
//   the unembedding compares it with 0, the logit of kRival.
// What the last two norms divide by hangs on the input, by a part in a hundred or so. All that they are followed
// by only scales with it, so the sign of the margin is exact but for rounding, and the margin is nearly the score.
#pragma once

#include "deeptail/model.h"
#include "problem.h"

namespace deeptail::modes {

inline constexpr TokenId kTarget = 4094, kRival = 4093;

// Of problems that lock_neurons takes.
Transformer constructed_model(const Problem& problem);

}  // namespace deeptail::modes
