// One target from start to end, whoever computes.
#pragma once

#include "estimators/tokensplit/plan.h"

namespace deeptail {

// targets_at_once: how many share the memory. cost.seconds is this target's share of the service's time,
// where the problem has a service.
Estimate estimate_target(const TokenProblem& problem, const TokensplitConfig& config,
                         std::size_t targets_at_once, ThreadPool& pool, const KeepGoing& keep_going);

}  // namespace deeptail
