// Margins of proposals that decide as those of the forward engine do: in fp16 first, and by the forward
// engine where fp16 leaves it open whether the level is reached. How many those are stays on the device.
#pragma once

#include <algorithm>

#include "compute_cuda/device.cuh"
#include "compute_cuda/fast/fast_forward.h"
#include "compute_cuda/forward_engine.h"
#include "compute_cuda/tokens/moves.cuh"

namespace deeptail::cuda {

// Open proposals, packed in any order.
struct OpenProposals {
  std::uint32_t* n;         // [1]
  std::uint32_t* rows;      // [*n, length]
  std::uint32_t* target;    // [*n]
  std::uint32_t* particle;  // [*n]: whose they are
};

// Packs the proposals whose margin is within kSecondLook of the level. Written so that a margin that is no
// number is open.
__global__ void __launch_bounds__(kMoveThreads)
    pack_open(MoveArgs a, std::uint32_t n, const std::uint32_t* target, OpenProposals open) {
  const std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  const int lane = static_cast<int>(threadIdx.x % 32), length = a.length;
  const bool is_open = i < n && a.note[i].kind != kNoMove &&
                       !(fabsf(a.margin[i] - a.groups[a.group[i]].level) >= kSecondLook);
  unsigned left = __ballot_sync(0xffffffffu, is_open);
  if (left == 0) return;
  std::uint32_t to = 0;
  if (lane == 0) to = atomicAdd(open.n, static_cast<std::uint32_t>(__popc(left)));
  to = __shfl_sync(0xffffffffu, to, 0);
  for (; left != 0; left &= left - 1, ++to) {  // the warp copies one after the other
    const std::uint32_t from = i - lane + (__ffs(left) - 1);
    for (int p = lane; p < length; p += 32)
      open.rows[static_cast<std::size_t>(to) * length + p] =
          a.proposed[static_cast<std::size_t>(from) * length + p];
    if (lane == 0) open.target[to] = target[from], open.particle[to] = from;
  }
}

// Puts the margins of open proposals in their places.
__global__ void __launch_bounds__(kMoveThreads)
    settle_open(OpenProposals open, const float* exact, float* margin) {
  const std::uint32_t n = *open.n;
  for (std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    margin[open.particle[i]] = exact[i];
}

class SecondLook {
 public:
  SecondLook(const DenseModel& model, const DenseInputs& inputs, std::size_t max_particles)
      : fast_(model, inputs, std::min<std::size_t>(max_particles, 1 << 17)),
        n_(1),
        rows_(max_particles * inputs.length()),
        target_(max_particles),
        particle_(max_particles),
        other_(max_particles),
        exact_(max_particles) {}

  const FastForward& fast() const { return fast_; }

  // Of the first n particles' proposals, into margin, which is moves.margin. target: [n].
  void margins(const MoveArgs& moves, std::uint32_t n, const std::uint32_t* target, float* margin,
               const ForwardEngine& forward, cudaStream_t stream) const {
    fast_.margins(n, moves.proposed, target, margin, stream);
    check(cudaMemsetAsync(n_.data(), 0, sizeof(std::uint32_t), stream), "clear");
    const OpenProposals open{n_.data(), rows_.data(), target_.data(), particle_.data()};
    const std::uint32_t blocks = (n + kMoveThreads - 1) / kMoveThreads;
    pack_open<<<blocks, kMoveThreads, 0, stream>>>(moves, n, target, open);
    forward.margins(n, open.rows, open.target, exact_.data(), other_.data(), stream, open.n);
    settle_open<<<std::min(blocks, 256u), kMoveThreads, 0, stream>>>(open, exact_.data(), margin);
  }

 private:
  FastForward fast_;
  DeviceArray<std::uint32_t> n_, rows_, target_, particle_, other_;
  DeviceArray<float> exact_;
};

}  // namespace deeptail::cuda
