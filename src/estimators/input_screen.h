// Certified bounds of the logits, tightened for the activations of one law of inputs.
#pragma once

#include "deeptail/law.h"
#include "deeptail/model.h"

namespace deeptail {

// From 1024 inputs of this seed; table may be null.
Screen screen_for(const Transformer& model, const InputLaw& law, std::uint64_t seed, ThreadPool& pool,
                  const FirstLayerTable* table);
Screen screen_for(const Transformer& model, const Distribution& dist, std::uint64_t seed, ThreadPool& pool,
                  const FirstLayerTable* table);

}  // namespace deeptail
