// What replicas that are independent of each other tell about parts of the event that none of them saw.
#pragma once

#include <span>

#include "estimators/tokensplit/triggers.h"

namespace deeptail {

// A mode: the inputs of the event that hold the same tokens at the two positions that decide it most, tokens
// with little part in it being one. Finer ones would all be seen once.
struct ModeCount {
  std::size_t modes = 0;                         // that were seen
  std::size_t seen_by_all = 0, seen_by_one = 0;  // of the replicas
  // Good and Turing: the parts of modes that one replica saw, over the whole. On average that is at least
  // the share of the event that all replicas together miss (docs/tokensplit.md).
  double unseen_share = 0.0;
};

// replicas: the hits of each, with their parts of its estimate.
ModeCount count_modes(std::span<const TriggerPool> replicas, const Distribution& prior);

}  // namespace deeptail
