// Proposals of ga-amls, a warp per particle: noise, the kernel's step, the prior's ratio and its decision in
// one go. Only proposals that the prior lets pass become candidates, packed one after another for the
// products; the score decides on them (score_rows.cuh). The order of the candidates is that in which warps
// finish; nothing depends on it, since every row is scored by itself.
#pragma once

#include "compute_cuda/activations/point_steps.cuh"
#include "compute_cuda/exact/twofold_rows.cuh"

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

// Rows that wait for their score.
struct Candidates {
  TwofoldRows u;          // [n, d]
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
__device__ inline void store_candidate(const TwofoldRows& to, std::uint32_t place, const float* row, int d,
                                       int lane) {
  for (int j = 4 * lane; j < d; j += 128)
#pragma unroll
    for (int i = 0; i < 4; i += 2)
      if (j + i < d) store_twofold2(to, place, j + i, row[j + i], j + i + 1 < d ? row[j + i + 1] : 0.0f);
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
  const NumberKey key{a.seed, step_index(a.level, a.move, particle)};
  const Step<kKind, kGaussian> step(a.prior, step_size);
  const float* u = a.u + static_cast<std::size_t>(particle) * a.stride;
  float* proposed = a.proposed + static_cast<std::size_t>(particle) * a.stride;
  RatioSums sums;
  for (int j = 4 * lane; j < a.d; j += 128) {
    float z[4];
    four_normals(key, Stream::kMoveNormals, static_cast<std::uint32_t>(j / 4), z);
#pragma unroll
    for (int i = 0; i < 4; ++i)
      if (j + i < a.d) proposed[j + i] = step.propose(u[j + i], z[i], key, j + i, sums);
  }
  sums = {warp_sum(sums.change), warp_sum(sums.distance)};
  const double log_ratio = step.log_ratio(sums);
  const r123::Philox4x32::ctr_type w = keyed_words(key, Stream::kMoveAccept, 0);
  if (!(log_ratio >= 0.0 || unit_double(even_slot(w)) < exp(log_ratio))) return;
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
  const NumberKey key{a.seed, step_index(a.level, a.move, particle)};
  const r123::Philox4x32::ctr_type w = keyed_words(key, Stream::kMoveAccept, 0);
  const double unit = unit_double(odd_slot(w));
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
