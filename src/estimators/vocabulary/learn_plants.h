// What hits of earlier draws say about what is worth planting.
#pragma once

#include "estimators/vocabulary/shared_draws.h"

namespace deeptail {

// Chances for one target: those given, drawn towards the mixture of plants that explains the hits best. hits: with all
// their tokens.
std::vector<PlantChance> learnt_plants(const PlantSites& sites, std::span<const PlantChance> given,
                                       std::span<const SharedHit> hits);

}  // namespace deeptail
