// Problems with the pair structure of a real model: margin = mean(a, b) + spread(a, b) Z, a and b the last
// two tokens, Z a sum of effects of 14 others, the third-last with 40 % of its variance; shifted so that the
// event has about the wanted probability.
#pragma once

#include "pair_table.h"
#include "problem.h"

namespace deeptail::modes {

Lock pair_lock(const Distribution& dist, const PairTable& table, double shift);
// The shift that makes the event about this likely.
double shift_for(const Distribution& dist, const PairTable& table, const ContextSum& context, double wanted);
std::unique_ptr<const Problem> semi_synthetic(const Distribution& dist, const PairTable& table,
                                              double wanted);

// root: of the source tree.
Problems semi_synthetic_problems(const std::string& root);

}  // namespace deeptail::modes
