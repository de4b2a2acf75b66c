// What ga-amls fits to activations: the whitening, the groups of the conditioned prior, and where the cloud lies.
#pragma once

#include "deeptail/ga_amls.h"
#include "splitting/start.h"

namespace deeptail {

// Calibration activations that distances and the screen look at.
inline constexpr std::size_t kGaCloudSample = 4096;

// The prior's parts, fitted to the activations.
struct GaFit {
  std::size_t n = 0;
  ConstRows x = {};  // [n, d]: what is whitened; the activations, or the groups' residuals
  Whitening whitening;
  GroupedCloud groups;            // of the conditioned prior
  std::vector<double> distances;  // [kGaCloudSample or n]: |u|, ascending

  std::span<const double> cumulative() const { return groups.cumulative; }
  // Only the points that are used are whitened. Refers to this fit.
  StartCloud start(GaStart where) const {
    if (where == GaStart::kPrior) return {};
    return {n,
            [this](std::size_t i, float* u) {
              whitening.whiten(1, x.from(i), {u, whitening.d});
            },
            groups.group};
  }
};

// Fills fit, which refers to the activations.
void fit_prior(const Activations& a, const GaAmlsConfig& config, ThreadPool& pool, GaFit& fit);

PriorKind marginal_of(GaPrior prior);
// |u| of every row, ascending.
std::vector<double> sorted_lengths(std::size_t n, std::size_t d, ConstRows u);
double quantile_of(const std::vector<double>& sorted, double q);

}  // namespace deeptail
