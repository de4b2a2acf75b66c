// Estimates from a cloud of activations: quadratic and Gaussian logit decomposition (docs/qld.md).
#pragma once

#include "deeptail/activations.h"
#include "deeptail/estimators.h"

namespace [[gnu::visibility("default")]] deeptail {

struct QldConfig {
  // Of the mean variance: normalised activations are always singular in one direction.
  double relative_ridge = 1e-6;
  std::size_t n_blocks = 32;  // of activations, for the jackknife interval
  std::uint64_t seed = 1;     // qld-arc: of the randomised projection
  void validate() const;
};

// Quadratic logit decomposition (Wu and Hilton 2025) as described: after ln_final, where logits are linear,
// whiten, take d = the direction of the shortest accepting vector, split u = a d + b, and count all n^2
// recombinations a(i) d + b(j) that give the target. Exact for Gaussian activations as n grows.
//
// The interval is a block jackknife of log p. It covers the sampling of activations with whitening and
// direction held fixed; it does not cover a and b being dependent, which is the method's own error.
Estimate qld(const Head& head, const Activations& activations, const Target& target, const QldConfig& config,
             ThreadPool& pool);

// What the method's published program computes, for comparison only (docs/qld.md names its three defects).
// One token only.
Estimate qld_arc(const Head& head, const Activations& activations, const Target& target,
                 const QldConfig& config, ThreadPool& pool);

// Gaussian logit difference: the normal tail beyond 0 of (best target logit - largest logit). The interval
// covers the sampling of mean and standard deviation, not the normal assumption.
Estimate gld(const Head& head, const Activations& activations, const Target& target, ThreadPool& pool);

}  // namespace deeptail
