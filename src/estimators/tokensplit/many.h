// Many targets of one model and distribution on one device.
#pragma once

#include "deeptail/estimators.h"
#include "estimators/tokensplit/service.h"

namespace deeptail {

// tokensplit_many on any device.
void run_many(const Transformer& model, const Distribution& dist, std::span<const TokensplitTask> tasks,
              const Answers& answers, std::size_t at_once, ParticleDevice& device,
              const ServiceOptions& options = {}, const Watch& watch = {});

}  // namespace deeptail
