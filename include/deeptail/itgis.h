// Independent token gradient importance sampling (Wu and Hilton 2025; docs/itgis.md).
#pragma once

#include "deeptail/estimators.h"

namespace [[gnu::visibility("default")]] deeptail {

struct ItgisConfig {
  std::uint64_t samples = 1 << 16;
  std::size_t batch = 256;   // samples between updates of the proposal
  double decay = 0.9;        // of the running mean gradient, per batch
  double temperature = 1.0;  // lower: stronger tilts
  std::uint64_t seed = 1;
  std::size_t max_triggers = 3;
  void validate() const;
};

// Every position is drawn on its own from p(token) exp(G . W_E[token] / temperature), normalised; G is the
// decayed mean, over earlier batches, of the gradient of the target logit w.r.t. the position's embedding.
// The first batch is drawn from p. A sample counts with the exact p / proposal of its batch, so the estimate
// is unbiased. The watch is told samples.
Estimate itgis(const Transformer& model, const Distribution& dist, const Target& target,
               const ItgisConfig& config, ThreadPool& pool, const Watch& watch = {});

}  // namespace deeptail
