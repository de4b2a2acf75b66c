// Tokens whose columns of W_U are the same: whatever the activation, they tie, and the smaller id is said.
#pragma once

#include <vector>

#include "deeptail/model.h"

namespace deeptail {

// The same event as a set that ties with no token outside it: of tokens that always tie all, if the smallest
// is in the target, and none, if it is not. Empty: never said; as many as the vocabulary: always. Laws on
// activations see a tie as a rounding error; this keeps it from them.
std::vector<TokenId> without_ties(const Head& head, const Target& target);

}  // namespace deeptail
