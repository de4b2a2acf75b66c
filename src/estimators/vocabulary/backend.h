// Where the passes of all tokens are run.
#pragma once

#include "deeptail/estimators.h"
#include "estimators/vocabulary/shared_draws.h"

namespace deeptail {

struct AllBackend {
  SayAll say;
  // Targets that are asked about alone, by tokensplit.
  std::function<void(std::span<const TokensplitTask> tasks, const Answers& answers, const Watch& watch)> ask;
};

// table: may be null. All must outlive the backend.
AllBackend cpu_backend(const Transformer& model, const Distribution& dist, const FirstLayerTable* table,
                       ThreadPool& pool);
// Throws DeviceError where there is no usable device.
AllBackend cuda_backend(const Transformer& model, const Distribution& dist);

}  // namespace deeptail
