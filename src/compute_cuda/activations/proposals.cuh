// Proposals of ga-amls, a warp per particle: noise, the kernel's step, the prior's ratio and its decision in
// one go. Only proposals that the prior lets pass become candidates, packed one after another for the
// products; the score decides on them (score_rows.cuh). The order of the candidates is that in which warps
// finish; nothing depends on it, since every row is scored by itself.
#pragma once

#include <new>

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
  TwofoldRows u;            // [n, d]
  std::uint32_t* which;     // [n]: row of the particle
  std::uint32_t* slots;     // [n]: its population
  std::uint32_t* groups;    // [n], or null
  std::uint32_t* count;     // of all populations
  std::uint64_t* count_of;  // [populations], or null: added to
};

// A population in its slot.
struct Population {
  std::uint32_t first = 0, n = 0;  // its rows among the particles of all
  float level = 0.0f;
  std::uint64_t number = 0, seed = 0;  // of the level, of the run
  double step_size = 0.0;              // at the level's first move
};

// A block is about one population: a grid is [blocks of rows, populations that move].
struct Moving {
  const Population* populations;  // [slots]
  const std::uint32_t* slots;     // [gridDim.y]
};

// The warps of a block that want a place among the candidates get one after the other. All threads must come here.
__device__ inline std::uint32_t take_place(const Candidates& c, bool wanted, std::uint32_t slot,
                                           std::uint32_t particle) {
  __shared__ std::uint32_t place[kRowWarps + 1];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  if (lane == 0) place[warp] = wanted;
  __syncthreads();
  if (threadIdx.x == 0) {
    std::uint32_t sum = 0;
    for (int w = 0; w < kRowWarps; ++w) {
      const std::uint32_t own = place[w];
      place[w] = sum;
      sum += own;
    }
    place[kRowWarps] = sum > 0 ? atomicAdd(c.count, sum) : 0;
    if (sum > 0 && c.count_of != nullptr)
      atomicAdd(reinterpret_cast<unsigned long long*>(c.count_of + slot), sum);
  }
  __syncthreads();
  const std::uint32_t found = place[kRowWarps] + place[warp];
  if (wanted && lane == 0) c.which[found] = particle, c.slots[found] = slot;
  return found;
}

// What a lane has of a row: every 128 numbers four neighbours, from j on, which is a multiple of four. Zeros beyond d.
__device__ inline void load_four(const float* row, int j, int d, float (&v)[4]) {
  if (j + 4 <= d) {
    const float4 four = *reinterpret_cast<const float4*>(row + j);
    v[0] = four.x, v[1] = four.y, v[2] = four.z, v[3] = four.w;
  } else {
#pragma unroll
    for (int i = 0; i < 4; ++i) v[i] = j + i < d ? row[j + i] : 0.0f;
  }
}
__device__ inline void store_four(float* row, int j, int d, const float (&v)[4]) {
  if (j + 4 <= d) {
    *reinterpret_cast<float4*>(row + j) = {v[0], v[1], v[2], v[3]};
  } else {
#pragma unroll
    for (int i = 0; i < 4; ++i)
      if (j + i < d) row[j + i] = v[i];
  }
}

// row: [d], of which the lane reads its own numbers from `from` on.
__device__ inline void store_candidate(const TwofoldRows& to, std::uint32_t place, const float* row, int d,
                                       int from) {
  for (int j = from; j < d; j += 128) {
    float v[4];
    load_four(row, j, d, v);
    store_twofold4(to, place, j, v);
  }
}

// Where particles are: in one of two places, and the other is for what is proposed. So nothing is copied where it is
// accepted.
struct PointPlaces {
  float* place[2];        // [rows, stride]
  std::uint8_t* flipped;  // [rows]: it is in place 1
  int stride;
  __device__ float* now(std::uint32_t row) const { return at(row, flipped[row]); }
  __device__ float* other(std::uint32_t row) const { return at(row, flipped[row] ^ 1); }
  __device__ float* at(std::uint32_t row, int which) const {
    return place[which] + static_cast<std::size_t>(row) * stride;
  }
};

struct ProposeArgs {
  Moving moving;
  int d;
  PointPlaces points;
  const std::uint32_t* groups;
  Candidates out;
  DensePrior prior;
  StepSizes sizes;     // of slot 0, but for its first
  std::size_t sized;   // the move's number among those whose step size adapts
  double fixed = 0.0;  // step size of one that does not
  std::uint32_t move;
};

template <MoveKernel kKind, bool kGaussian>
__global__ void __launch_bounds__(kRowThreads) propose_points(const __grid_constant__ ProposeArgs a) {
  using KernelStep = Step<kKind, kGaussian>;
  __shared__ alignas(
      KernelStep) unsigned char shared_step[sizeof(KernelStep)];  // its constants take many steps in fp64
  const std::uint32_t slot = a.moving.slots[blockIdx.y];
  const Population& population = a.moving.populations[slot];
  if (blockIdx.x * kRowWarps >= population.n) return;
  if (threadIdx.x == 0) {
    StepSizes sizes = a.sizes;
    sizes.first = population.step_size, sizes.h += slot, sizes.accepted += slot;
    const double step_size = a.fixed > 0.0 ? a.fixed : sizes.at(a.sized, population.n);
    if (blockIdx.x == 0 && a.fixed == 0.0) sizes.h[a.sized * sizes.stride] = step_size;
    new (shared_step) KernelStep(a.prior, step_size);
  }
  __syncthreads();
  const std::uint32_t number = blockIdx.x * kRowWarps + threadIdx.x / 32, row = population.first + number;
  const int lane = threadIdx.x % 32;
  float* proposed = nullptr;
  float first[4] = {};  // of the lane's numbers: all that it has of a row of 128
  bool passes = false;
  if (number < population.n) {
    proposed = a.points.other(row);
    const NumberKey key{population.seed, step_index(population.number, a.move, number)};
    const KernelStep step = *reinterpret_cast<const KernelStep*>(shared_step);
    const float* u = a.points.now(row);
    RatioSums sums;
    for (int j = 4 * lane; j < a.d; j += 128) {
      float z[4], v[4];
      four_normals(key, Stream::kMoveNormals, static_cast<std::uint32_t>(j / 4), z);
      load_four(u, j, a.d, v);
#pragma unroll
      for (int i = 0; i < 4; ++i)
        if (j + i < a.d) v[i] = step.propose(v[i], z[i], key, j + i, sums);
      store_four(proposed, j, a.d, v);
      if (j == 4 * lane)
#pragma unroll
        for (int i = 0; i < 4; ++i) first[i] = v[i];
    }
    sums = {warp_sum(sums.change), warp_sum(sums.distance)};
    const double log_ratio = step.log_ratio(sums);
    passes =
        log_ratio >= 0.0 || unit_double(even_slot(keyed_words(key, Stream::kMoveAccept, 0))) < exp(log_ratio);
  }
  const std::uint32_t place = take_place(a.out, passes, slot, row);
  if (!passes) return;
  if (lane == 0 && a.groups != nullptr) a.out.groups[place] = a.groups[row];
  if (4 * lane < a.d) store_twofold4(a.out.u, place, 4 * lane, first);
  store_candidate(a.out.u, place, proposed, a.d, 4 * lane + 128);
}

struct ProposeGroupsArgs {
  Moving moving;
  int d, n_groups;
  PointPlaces points;
  const std::uint32_t* groups;  // [rows]
  const double* cumulative;     // [n_groups]
  Candidates out;
  std::uint32_t move;
};

// Another group from its prior, with the residual as it is.
__global__ void __launch_bounds__(kRowThreads) propose_groups(const __grid_constant__ ProposeGroupsArgs a) {
  const std::uint32_t slot = a.moving.slots[blockIdx.y];
  const Population& population = a.moving.populations[slot];
  if (blockIdx.x * kRowWarps >= population.n) return;
  const std::uint32_t number = blockIdx.x * kRowWarps + threadIdx.x / 32, row = population.first + number;
  const int lane = threadIdx.x % 32;
  int low = 0, high = a.n_groups - 1;  // the first group whose cumulative share is above
  bool other = false;
  if (number < population.n) {
    const NumberKey key{population.seed, step_index(population.number, a.move, number)};
    const double unit = unit_double(odd_slot(keyed_words(key, Stream::kMoveAccept, 0)));
    while (low < high) {
      const int middle = (low + high) / 2;
      if (a.cumulative[middle] > unit)
        high = middle;
      else
        low = middle + 1;
    }
    other = static_cast<std::uint32_t>(low) != a.groups[row];
  }
  const std::uint32_t place = take_place(a.out, other, slot, row);
  if (!other) return;
  if (lane == 0) a.out.groups[place] = static_cast<std::uint32_t>(low);
  store_candidate(a.out.u, place, a.points.now(row), a.d, 4 * lane);
}

// Particles go back to place 0.
__global__ void __launch_bounds__(kRowThreads) gather_points(Moving moving, int d, PointPlaces points) {
  const Population& population = moving.populations[moving.slots[blockIdx.y]];
  const std::uint32_t number = blockIdx.x * kRowWarps + threadIdx.x / 32, row = population.first + number;
  if (number >= population.n || !points.flipped[row]) return;
  const float* from = points.at(row, 1);
  float* to = points.at(row, 0);
  for (int j = threadIdx.x % 32; j < d; j += 32) to[j] = from[j];
  __syncwarp();
  if (threadIdx.x % 32 == 0) points.flipped[row] = 0;
}

// All particles of a population as candidates, in order, from place `at` on. Counts them and all before.
__global__ void __launch_bounds__(kRowThreads)
    all_candidates(std::uint32_t slot, std::uint32_t first, std::uint32_t n, std::uint32_t at, int d,
                   int stride, const float* u, const std::uint32_t* groups, Candidates out) {
  const std::uint32_t number = blockIdx.x * kRowWarps + threadIdx.x / 32, row = first + number,
                      place = at + number;
  if (number >= n) return;
  const int lane = threadIdx.x % 32;
  if (lane == 0) {
    out.which[place] = row;
    out.slots[place] = slot;
    if (groups != nullptr) out.groups[place] = groups[row];
    if (number == 0) *out.count = at + n;
  }
  store_candidate(out.u, place, u + static_cast<std::size_t>(row) * stride, d, 4 * lane);
}

}  // namespace deeptail::cuda
