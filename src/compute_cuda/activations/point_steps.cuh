// One dimension of a proposal, the prior's ratio, and the step size from move to move: the arithmetic of
// splitting/kernels/propose.cpp, fp32 for the step and fp64 for the ratio. Runs on the host as well, for
// tests.
#pragma once

#include "compute_cuda/activation_engine.h"
#include "compute_cuda/keyed_numbers.cuh"

namespace deeptail::cuda {

// A product prior (prior/product_prior.cpp).
template <bool kGaussian>
struct PriorTerms {
  float factor, width, power;  // 1 / (nu s^2), nu s^2, -(nu + 1)
  double nu, scale;
  __host__ __device__ explicit PriorTerms(const DensePrior& p)
      : factor(static_cast<float>(1.0 / (p.nu * p.scale * p.scale))),
        width(static_cast<float>(p.nu * p.scale * p.scale)),
        power(static_cast<float>(-(p.nu + 1.0))),
        nu(p.nu),
        scale(p.scale) {}
  __host__ __device__ float gradient(float u) const { return kGaussian ? -u : power * u / (width + u * u); }
  // Log density at v minus that at u, without the factor of density_factor().
  __host__ __device__ double change(float u, float v) const {
    if constexpr (kGaussian) return static_cast<double>(v) * v - static_cast<double>(u) * u;
    return logf(fmaf(v * v, factor, 1.0f) / fmaf(u * u, factor, 1.0f));
  }
  __host__ __device__ double change_factor() const { return kGaussian ? -0.5 : -0.5 * (nu + 1.0); }
};

// Sums over the dimensions from which the ratio is made.
struct RatioSums {
  double change = 0.0, distance = 0.0;
};

// One dimension of a proposal. h: the step size.
template <MoveKernel kKind, bool kGaussian>
struct Step {
  PriorTerms<kGaussian> prior;
  double h, wide;  // wide = sqrt(2 h)
  float step, spread, keep;

  __host__ __device__ Step(const DensePrior& p, double step_size)
      : prior(p), h(step_size), wide(sqrt(2.0 * step_size)), step(static_cast<float>(step_size)) {
    if constexpr (kKind == MoveKernel::kPcn) {
      const double beta2 = fmin(1.0, 2.0 * h);
      keep = static_cast<float>(sqrt(1.0 - beta2));
      spread = static_cast<float>(p.scale * sqrt(beta2));
    } else {
      keep = 1.0f;
      spread = static_cast<float>(wide);
    }
  }

  __host__ __device__ double inverse_metric(double u) const {
    return (prior.nu * (prior.scale * prior.scale) + u * u) / (prior.nu + 1.0);
  }

  __host__ __device__ float propose(float u, float z, const NumberKey& key, int dimension,
                                    RatioSums& sums) const {
    if constexpr (kKind == MoveKernel::kRwmh) {
      const float v = u + spread * z;
      sums.change += prior.change(u, v);
      return v;
    } else if constexpr (kKind == MoveKernel::kMala) {
      const float drift = step * prior.gradient(u);
      const float v = u + drift + spread * z;
      const float there = v - u - drift, back = u - v - step * prior.gradient(v);
      sums.change += prior.change(u, v);
      sums.distance += (there - back) * (there + back);
      return v;
    } else if constexpr (kKind == MoveKernel::kMapla) {
      const double at = u, metric = inverse_metric(at);
      const auto v = static_cast<float>(at - h * at + wide * sqrt(metric) * z);
      const double to = v, there = to - at + h * at, back = at - to + h * to;
      sums.change += prior.change(u, v);
      sums.distance += there * there / metric - back * back / inverse_metric(to);
      return v;
    } else {
      if constexpr (kGaussian) return keep * u + spread * z;
      // The scale given u: Gamma((nu + 1) / 2) with rate (nu + (u / scale)^2) / 2 (ProductPrior).
      const auto shape = static_cast<std::uint32_t>((prior.nu + 1.0) / 2.0);
      const double inverse = 1.0 / (prior.scale * prior.scale);
      const auto w = static_cast<float>(exponentials(key, Stream::kMixing, dimension, shape) * 2.0 /
                                        (prior.nu + inverse * u * u));
      return keep * u + spread * z / sqrtf(w);
    }
  }

  __host__ __device__ double log_ratio(const RatioSums& sums) const {
    if constexpr (kKind == MoveKernel::kPcn) return 0.0;
    const double change = prior.change_factor() * sums.change;
    if constexpr (kKind == MoveKernel::kRwmh) return change;
    const double moved = change + sums.distance / (4.0 * h);
    return kKind == MoveKernel::kMapla ? moved + change / (prior.nu + 1.0) : moved;
  }
};

// How the step size of a population goes on from move to move; all on the device.
struct StepSizes {
  double first, adaptation, wanted, largest;
  std::size_t burn_in;
  double* h;                      // [moves, stride]
  const std::uint32_t* accepted;  // [moves, stride]
  std::size_t stride = 1;
  __host__ __device__ double after(double now, std::uint32_t n_accepted, std::uint32_t n) const {
    return fmin(now * exp(adaptation * (static_cast<double>(n_accepted) / n - wanted)), largest);
  }
  __host__ __device__ double at(std::size_t move, std::uint32_t n) const {
    if (move == 0) return first;
    const std::size_t last = (move - 1) * stride;
    return move <= burn_in ? after(h[last], accepted[last], n) : h[last];
  }
};

}  // namespace deeptail::cuda
