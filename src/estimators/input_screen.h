// Certified bounds of the logits, tightened for the activations of one input distribution.
#pragma once

#include "deeptail/inputs.h"
#include "deeptail/model.h"

namespace deeptail {

// From 1024 inputs of this seed; table may be null.
Screen screen_for(const Transformer& model, const Distribution& dist, std::uint64_t seed, ThreadPool& pool,
                  const FirstLayerTable* table);

}  // namespace deeptail
