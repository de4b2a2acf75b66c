#include "estimators/ga_amls/fit.h"

#include <algorithm>
#include <cmath>

namespace deeptail {

std::vector<double> sorted_lengths(std::size_t n, std::size_t d, ConstRows u) {
  std::vector<double> out(n, 0.0);
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j < d; ++j) out[i] += static_cast<double>(u.row(i)[j]) * u.row(i)[j];
    out[i] = std::sqrt(out[i]);
  }
  std::sort(out.begin(), out.end());
  return out;
}

double quantile_of(const std::vector<double>& sorted, double q) {
  return sorted[std::min(sorted.size() - 1,
                         static_cast<std::size_t>(q * static_cast<double>(sorted.size())))];
}

void fit_prior(const Activations& a, const GaAmlsConfig& config, ThreadPool& pool, GaFit& fit) {
  fit.n = a.n;
  fit.x = a.rows();
  if (config.prior == GaPrior::kConditioned) {
    fit.groups = group_activations(a, config.min_group, config.relative_ridge, pool);
    fit.whitening = fit.groups.whitening;
    fit.x = {fit.groups.residuals.data(), a.d_model};
  } else {
    fit.whitening = whitening(moments(a.n, a.d_model, fit.x, pool), config.relative_ridge);
  }
  constexpr std::size_t kBlock = 64;
  const std::size_t n = std::min(a.n, kGaCloudSample);
  AlignedVector<float> cloud(n * a.d_model);
  pool.for_each_block((n + kBlock - 1) / kBlock, [&](std::size_t block, std::size_t) {
    const std::size_t first = block * kBlock;
    fit.whitening.whiten(std::min(kBlock, n - first), fit.x.from(first),
                         {cloud.data() + first * a.d_model, a.d_model});
  });
  fit.distances = sorted_lengths(n, a.d_model, {cloud.data(), a.d_model});
}

PriorKind marginal_of(GaPrior prior) {
  if (prior == GaPrior::kStudentT) return PriorKind::kStudentT;
  return prior == GaPrior::kGaussian ? PriorKind::kGaussian : PriorKind::kStudentTMatched;
}

}  // namespace deeptail
