// Norms of queries and keys, and their turn by position, in place.
#pragma once

#include "compute_cuda/device.cuh"
#include "compute_cuda/exact/head_and_gates.h"
#include "compute_cuda/exact/twofold_rows.cuh"

namespace deeptail::cuda {

struct HeadStepArgs {
  RowCount n;  // rows
  float* qkv;  // [n, stride]: heads of queries, of keys, of values
  int stride, n_heads, n_kv_heads;
  const std::uint32_t* position;  // [n]; null: row % length
  int length;
  const float *cosines, *sines;   // [positions, half]
  const float *q_norm, *k_norm;   // [d_head], or null
  HeadStep step;                  // the rest; its pointers are set here
};

// Eight lanes to a head: they read whole sectors of memory, whatever its width.
inline constexpr int kStepLanes = 8;

__global__ void __launch_bounds__(256) head_steps(const __grid_constant__ HeadStepArgs args) {
  const std::uint32_t n_heads = args.n_heads + args.n_kv_heads, total = args.n.get() * n_heads;
  const std::uint32_t groups = gridDim.x * blockDim.x / kStepLanes;
  const std::uint32_t own = (blockIdx.x * blockDim.x + threadIdx.x) / kStepLanes;
  const int lane = static_cast<int>(threadIdx.x % kStepLanes);
  // All lanes of a warp go round together, since they add up together.
  for (std::uint32_t first = own - own % (32 / kStepLanes); first < total; first += groups) {
    const std::uint32_t item = first + own % (32 / kStepLanes);
    const bool here = item < total;
    const std::uint32_t row = here ? item / n_heads : 0, head = here ? item % n_heads : 0;
    HeadStep step = args.step;
    const std::size_t position = args.position != nullptr ? args.position[row] : row % args.length;
    step.cosines = args.cosines + position * step.half;
    step.sines = args.sines + position * step.half;
    step.norm = head < static_cast<std::uint32_t>(args.n_heads) ? args.q_norm : args.k_norm;
    float* values = args.qkv + static_cast<std::size_t>(row) * args.stride + head * step.d_head;
    float sum = 0.0f;
    if (step.norm != nullptr) {
      sum = here ? step.squares(values, lane, kStepLanes) : 0.0f;
#pragma unroll
      for (int distance = 1; distance < kStepLanes; distance *= 2)
        sum += __shfl_xor_sync(0xffffffffu, sum, distance);
    }
    if (here) step.finish(values, sum, lane, kStepLanes);
  }
}

inline void launch_head_steps(const HeadStepArgs& args, cudaStream_t stream) {
  if (args.n.n == 0) return;
  const std::uint64_t lanes =
      static_cast<std::uint64_t>(args.n.n) * (args.n_heads + args.n_kv_heads) * kStepLanes;
  const auto blocks = std::min<std::uint64_t>((lanes + 255) / 256, 16u * device_traits().n_sm);
  head_steps<<<static_cast<unsigned>(blocks), 256, 0, stream>>>(args);
  check(cudaGetLastError(), "starting the turn of heads");
}

}  // namespace deeptail::cuda
