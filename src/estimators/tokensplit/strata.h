// The laws under which one estimate runs, and what each run of them is worth.
#pragma once

#include <optional>

#include "estimators/tokensplit/candidates.h"
#include "estimators/tokensplit/mixture.h"

namespace deeptail {

// Rare tokens raised: every position's table mixed with the uniform law on its tokens, the last free ones
// more than the others.
Distribution flattened(const Distribution& prior);

// The flattened law, and where a scan found tokens the law that plants them, half each.
std::unique_ptr<const Mixture> tilted(const Distribution& prior, std::optional<PlantList> plants);
// With a third law, of plants that were learnt, where there are any.
inline constexpr std::size_t kLearntLaw = 2;  // its number
std::unique_ptr<const Mixture> tilted(const Distribution& prior, PlantList scanned,
                                      const PlantWorths& learnt);

}  // namespace deeptail
