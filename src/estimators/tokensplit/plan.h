// What a budget buys: the pilot's size, then the replicas' sizes.
#pragma once

#include "deeptail/estimators.h"
#include "estimators/tokensplit/pilot.h"

namespace deeptail {

PilotConfig pilot_config(const TokensplitConfig& config, double flops_per_forward);

// Populations of one replica.
struct Sizes {
  std::size_t first_draw = 0;
  std::vector<std::size_t> at_level = {};  // particles that move at each level
  double flops = 0.0;                      // of one replica, about
  std::size_t most() const;                // at any level
  double bytes(const ScorerBytes& scorer, const TokenProblem& problem) const;  // of one replica
  double token_bytes(std::size_t length) const;  // of one whose sequences are scored elsewhere
};

// Sizes that what the pilot left of the budget pays for. When it does not even pay for small populations,
// they shrink and the plan's moves are cut. laws: how many such runs make one estimate, and so how small a
// population of each may be.
Sizes sizes_of(const TokensplitConfig& config, PilotResult& pilot, double flops_per_forward,
               std::size_t laws);

// At least the populations that the user asks for, before a pilot has run.
Sizes asked_sizes(const TokensplitConfig& config);

}  // namespace deeptail
