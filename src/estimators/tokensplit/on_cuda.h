// A CUDA device for populations of token sequences. Only where the backend is built (DEEPTAIL_HAS_CUDA).
#pragma once

#include <memory>

#include "compute_cuda/particle_engine.h"
#include "estimators/tokensplit/service.h"

namespace deeptail {

// Throws cuda::Failure when the device cannot do it.
std::unique_ptr<ParticleDevice> make_cuda_particles(const Transformer& model, const Distribution& dist,
                                                    const cuda::ParticleEngineOptions& options = {});

}  // namespace deeptail
