// One target on a device that others share.
#pragma once

#include "estimators/tokensplit/place.h"

namespace deeptail {

// targets_at_once: how many share this machine's memory. cost.seconds is this target's share of the service's
// time.
Estimate estimate_target(const ServedPlace& place, const TokensplitConfig& config,
                         std::size_t targets_at_once, ThreadPool& pool, const Watch& watch);

// What its populations will take of this machine's memory at least.
double target_bytes(const TokenProblem& problem, const TokensplitConfig& config);

}  // namespace deeptail
