// Proposals of ga-amls, a warp per particle: noise, the kernel's step, the prior's ratio and its decision in
// one go. Only proposals that the prior lets pass become candidates, packed one after another for the
// products; the score decides on them (score_rows.cuh). The order of the candidates is that in which warps
// finish; nothing depends on it, since every row is scored by itself.
//
// Arithmetic as in splitting/kernels/propose.cpp: fp32 for the step, fp64 for the ratio.
#pragma once

#include "compute_cuda/activation_engine.h"
#include "compute_cuda/keyed_numbers.cuh"
#include "compute_cuda/split_rows.cuh"

namespace deeptail::cuda {

inline constexpr unsigned kAllLanes = 0xffffffffu;
inline constexpr int kRowWarps = 8, kRowThreads = 32 * kRowWarps;  // of kernels with a warp per row

template <class T>
__device__ inline T warp_sum(T v) {
#pragma unroll
  for (int step = 16; step > 0; step /= 2) v += __shfl_xor_sync(kAllLanes, v, step);
  return v;
}

__device__ inline float warp_max(float v) {
#pragma unroll
  for (int step = 16; step > 0; step /= 2) v = fmaxf(v, __shfl_xor_sync(kAllLanes, v, step));
  return v;
}

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
  __device__ float gradient(float u) const { return kGaussian ? -u : power * u / (width + u * u); }
  // Log density at v minus that at u, without the factor of density_factor().
  __device__ double change(float u, float v) const {
    if constexpr (kGaussian) return static_cast<double>(v) * v - static_cast<double>(u) * u;
    return static_cast<double>(logf(fmaf(v * v, factor, 1.0f))) - logf(fmaf(u * u, factor, 1.0f));
  }
  __device__ double change_factor() const { return kGaussian ? -0.5 : -0.5 * (nu + 1.0); }
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

  __device__ Step(const DensePrior& p, double step_size)
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

  __device__ double inverse_metric(double u) const {
    return (prior.nu * (prior.scale * prior.scale) + u * u) / (prior.nu + 1.0);
  }

  __device__ float propose(float u, float z, const NumberKey& key, int dimension, RatioSums& sums) const {
    if constexpr (kKind == MoveKernel::kRwmh) {
      const float v = u + spread * z;
      sums.change += prior.change(u, v);
      return v;
    } else if constexpr (kKind == MoveKernel::kMala) {
      const float drift = step * prior.gradient(u);
      const float v = u + drift + spread * z;
      const double there = v - u - drift, back = u - v - step * prior.gradient(v);
      sums.change += prior.change(u, v);
      sums.distance += there * there - back * back;
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
      const auto w = static_cast<float>(exponentials(key, kStreamMixing, dimension, shape) * 2.0 /
                                        (prior.nu + inverse * u * u));
      return keep * u + spread * z / sqrtf(w);
    }
  }

  __device__ double log_ratio(const RatioSums& sums) const {
    if constexpr (kKind == MoveKernel::kPcn) return 0.0;
    const double change = prior.change_factor() * sums.change;
    if constexpr (kKind == MoveKernel::kRwmh) return change;
    const double moved = change + sums.distance / (4.0 * h);
    return kKind == MoveKernel::kMapla ? moved + change / (prior.nu + 1.0) : moved;
  }
};

// How the step size goes on from move to move; all on the device.
struct StepSizes {
  double first, adaptation, wanted, largest;
  std::size_t burn_in;
  double* h;                      // [moves]
  const std::uint32_t* accepted;  // [moves]
  __host__ __device__ double after(double now, std::uint32_t n_accepted, std::uint32_t n) const {
    return fmin(now * exp(adaptation * (static_cast<double>(n_accepted) / n - wanted)), largest);
  }
  __device__ double at(std::size_t move, std::uint32_t n) const {
    if (move == 0) return first;
    return move <= burn_in ? after(h[move - 1], accepted[move - 1], n) : h[move - 1];
  }
};

// Rows that wait for their score.
struct Candidates {
  SplitRows u;            // [n, d]
  std::uint32_t* which;   // [n]: the particle
  std::uint32_t* groups;  // [n], or null
  std::uint32_t* count;
};

struct ProposeArgs {
  std::uint32_t n;
  int d, stride;
  const float* u;   // [n, stride]
  float* proposed;  // [n, stride]
  const std::uint32_t* groups;
  Candidates out;
  DensePrior prior;
  StepSizes sizes;
  std::uint64_t seed, level;
  std::uint32_t move;
};

// The warp's next place among the candidates.
__device__ inline std::uint32_t take_place(const Candidates& c, std::uint32_t particle, int lane) {
  std::uint32_t place = 0;
  if (lane == 0) {
    place = atomicAdd(c.count, 1u);
    c.which[place] = particle;
  }
  return __shfl_sync(kAllLanes, place, 0);
}

// row: [d], of which the lane reads what four_normals' blocks gave it.
__device__ inline void store_candidate(const SplitRows& to, std::uint32_t place, const float* row, int d,
                                       int lane) {
  for (int j = 4 * lane; j < d; j += 128)
#pragma unroll
    for (int i = 0; i < 4; i += 2)
      if (j + i < d) store_split2(to, place, j + i, row[j + i], j + i + 1 < d ? row[j + i + 1] : 0.0f);
}

template <MoveKernel kKind, bool kGaussian>
__global__ void __launch_bounds__(kRowThreads) propose_points(const __grid_constant__ ProposeArgs a) {
  __shared__ double step_size;
  if (threadIdx.x == 0) {
    step_size = a.sizes.at(a.move, a.n);
    if (blockIdx.x == 0) a.sizes.h[a.move] = step_size;
  }
  __syncthreads();
  const std::uint32_t particle = blockIdx.x * kRowWarps + threadIdx.x / 32;
  if (particle >= a.n) return;
  const int lane = threadIdx.x % 32;
  const NumberKey key{a.seed, move_index(a.level, a.move, particle)};
  const Step<kKind, kGaussian> step(a.prior, step_size);
  const float* u = a.u + static_cast<std::size_t>(particle) * a.stride;
  float* proposed = a.proposed + static_cast<std::size_t>(particle) * a.stride;
  RatioSums sums;
  for (int j = 4 * lane; j < a.d; j += 128) {
    float z[4];
    four_normals(key, kStreamNormals, static_cast<std::uint32_t>(j / 4), z);
#pragma unroll
    for (int i = 0; i < 4; ++i)
      if (j + i < a.d) proposed[j + i] = step.propose(u[j + i], z[i], key, j + i, sums);
  }
  sums = {warp_sum(sums.change), warp_sum(sums.distance)};
  const double log_ratio = step.log_ratio(sums);
  const r123::Philox4x32::ctr_type w = keyed_words(key, kStreamAccept, 0);
  if (!(log_ratio >= 0.0 || unit_double(w[0], w[1]) < exp(log_ratio))) return;
  const std::uint32_t place = take_place(a.out, particle, lane);
  if (lane == 0 && a.groups != nullptr) a.out.groups[place] = a.groups[particle];
  store_candidate(a.out.u, place, proposed, a.d, lane);
}

struct ProposeGroupsArgs {
  std::uint32_t n;
  int d, stride, n_groups;
  const float* u;               // [n, stride]
  const std::uint32_t* groups;  // [n]
  const double* cumulative;     // [n_groups]
  Candidates out;
  std::uint64_t seed, level;
  std::uint32_t move;
};

// Another group from its prior, with the residual as it is.
__global__ void __launch_bounds__(kRowThreads) propose_groups(const __grid_constant__ ProposeGroupsArgs a) {
  const std::uint32_t particle = blockIdx.x * kRowWarps + threadIdx.x / 32;
  if (particle >= a.n) return;
  const int lane = threadIdx.x % 32;
  const NumberKey key{a.seed, move_index(a.level, a.move, particle)};
  const r123::Philox4x32::ctr_type w = keyed_words(key, kStreamAccept, 0);
  const double unit = unit_double(w[2], w[3]);
  int low = 0, high = a.n_groups - 1;  // the first group whose cumulative share is above
  while (low < high) {
    const int middle = (low + high) / 2;
    if (a.cumulative[middle] > unit)
      high = middle;
    else
      low = middle + 1;
  }
  if (static_cast<std::uint32_t>(low) == a.groups[particle]) return;
  const std::uint32_t place = take_place(a.out, particle, lane);
  if (lane == 0) a.out.groups[place] = static_cast<std::uint32_t>(low);
  store_candidate(a.out.u, place, a.u + static_cast<std::size_t>(particle) * a.stride, a.d, lane);
}

// All particles as candidates, in order.
__global__ void __launch_bounds__(kRowThreads)
    all_candidates(std::uint32_t n, int d, int stride, const float* u, const std::uint32_t* groups,
                   Candidates out) {
  const std::uint32_t particle = blockIdx.x * kRowWarps + threadIdx.x / 32;
  if (particle >= n) return;
  const int lane = threadIdx.x % 32;
  if (lane == 0) {
    out.which[particle] = particle;
    if (groups != nullptr) out.groups[particle] = groups[particle];
    if (particle == 0) *out.count = n;
  }
  store_candidate(out.u, particle, u + static_cast<std::size_t>(particle) * stride, d, lane);
}

}  // namespace deeptail::cuda
