#include <algorithm>
#include <cmath>

#include "deeptail/kernels.h"

namespace deeptail {

namespace {

void propose_rwmh(const ProductPrior& prior, double h, const ProposalBlock& b) {
  const auto spread = static_cast<float>(std::sqrt(2.0 * h));
  for (std::size_t i = 0; i < b.n; ++i)
    for (std::size_t j = 0; j < prior.dim(); ++j)
      b.proposed.row(i)[j] = b.u.row(i)[j] + spread * b.noise.row(i)[j];
  prior.log_density(b.n, b.proposed, b.proposed_log_density);
  for (std::size_t i = 0; i < b.n; ++i) b.log_ratio[i] = b.proposed_log_density[i] - b.log_density[i];
}

// Squared distance of u from proposed + h * gradient(proposed), in four fixed lanes.
double drift_distance(std::size_t dim, const float* u, const float* proposed, const float* gradient,
                      float h) {
  double sum[4] = {};
  for (std::size_t j = 0; j < dim; ++j) {
    const double r = u[j] - proposed[j] - h * gradient[j];
    sum[j % 4] += r * r;
  }
  return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

void propose_mala(const ProductPrior& prior, double h, const ProposalBlock& b) {
  const auto spread = static_cast<float>(std::sqrt(2.0 * h)), step = static_cast<float>(h);
  for (std::size_t i = 0; i < b.n; ++i)
    for (std::size_t j = 0; j < prior.dim(); ++j)
      b.proposed.row(i)[j] = b.u.row(i)[j] + step * b.gradient.row(i)[j] + spread * b.noise.row(i)[j];
  prior.log_density(b.n, b.proposed, b.proposed_log_density);
  prior.grad_log_density(b.n, b.proposed, b.proposed_gradient);
  for (std::size_t i = 0; i < b.n; ++i) {
    const double there = drift_distance(prior.dim(), b.proposed.row(i), b.u.row(i), b.gradient.row(i), step);
    const double back =
        drift_distance(prior.dim(), b.u.row(i), b.proposed.row(i), b.proposed_gradient.row(i), step);
    b.log_ratio[i] = b.proposed_log_density[i] - b.log_density[i] + (there - back) / (4.0 * h);
  }
}

// With G = diag((nu + 1) / (nu s^2 + u^2)), G^-1 grad log prior = -u, and log det G^-1 follows from the
// density: sum log(1 + u^2 / (nu s^2)) = -2 log density / (nu + 1).
void propose_mapla(const ProductPrior& prior, double h, const ProposalBlock& b) {
  const double nu = prior.nu(), s2 = prior.scale() * prior.scale();
  const auto inverse_metric = [&](double u) { return (nu * s2 + u * u) / (nu + 1.0); };
  const auto spread = std::sqrt(2.0 * h);
  for (std::size_t i = 0; i < b.n; ++i)
    for (std::size_t j = 0; j < prior.dim(); ++j) {
      const double u = b.u.row(i)[j];
      b.proposed.row(i)[j] =
          static_cast<float>(u - h * u + spread * std::sqrt(inverse_metric(u)) * b.noise.row(i)[j]);
    }
  prior.log_density(b.n, b.proposed, b.proposed_log_density);
  for (std::size_t i = 0; i < b.n; ++i) {
    double there = 0.0, back = 0.0;
    for (std::size_t j = 0; j < prior.dim(); ++j) {
      const double u = b.u.row(i)[j], v = b.proposed.row(i)[j];
      there += (v - u + h * u) * (v - u + h * u) / inverse_metric(u);
      back += (u - v + h * v) * (u - v + h * v) / inverse_metric(v);
    }
    const double change = b.proposed_log_density[i] - b.log_density[i];
    b.log_ratio[i] = change + change / (nu + 1.0) + (there - back) / (4.0 * h);
  }
}

void propose_pcn(const ProductPrior& prior, double h, const ProposalBlock& b, std::uint64_t seed,
                 std::span<const std::uint64_t> indices, std::span<float> mixing) {
  const double beta2 = std::min(1.0, 2.0 * h);
  const auto keep = static_cast<float>(std::sqrt(1.0 - beta2));
  const auto spread = static_cast<float>(prior.scale() * std::sqrt(beta2));
  for (std::size_t i = 0; i < b.n; ++i) {
    const float *u = b.u.row(i), *noise = b.noise.row(i);
    float* proposed = b.proposed.row(i);
    if (prior.gaussian()) {
      for (std::size_t j = 0; j < prior.dim(); ++j) proposed[j] = keep * u[j] + spread * noise[j];
    } else {
      prior.sample_mixing(seed, indices[i], u, mixing.data());
      for (std::size_t j = 0; j < prior.dim(); ++j)
        proposed[j] = keep * u[j] + spread * noise[j] / std::sqrt(mixing[j]);
    }
    b.log_ratio[i] = 0.0;
  }
}

}  // namespace

void propose(KernelKind kind, const ProductPrior& prior, double h, const ProposalBlock& block,
             std::uint64_t seed, std::span<const std::uint64_t> indices, std::span<float> mixing) {
  switch (kind) {
    case KernelKind::kRwmh:
      return propose_rwmh(prior, h, block);
    case KernelKind::kMapla:
      // A Gaussian's metric is constant: MAPLA is MALA.
      if (!prior.gaussian()) return propose_mapla(prior, h, block);
      return propose_mala(prior, h, block);
    case KernelKind::kMala:
      return propose_mala(prior, h, block);
    case KernelKind::kPcn:
      return propose_pcn(prior, h, block, seed, indices, mixing);
  }
}

}  // namespace deeptail
