// One move of every particle of a batch: accepted iff the margin reaches the group's level.
#pragma once

#include "compute_cuda/particle_engine.h"
#include "compute_cuda/tokens/propose.cuh"

namespace deeptail::cuda {

struct MoveArgs {
  MoveTables tables;
  const DeviceGroup* groups;
  const double* cumulative;        // [groups, length]
  const std::uint32_t* group;      // [n]: of each particle
  std::uint32_t *rows, *proposed;  // [n, length]
  const float* margin;             // [n]: of the proposals
  std::uint32_t* note;             // [n]: what was proposed
  MoveCounts* counts;              // [groups, 3, length]: by kind and first changed position
};

inline constexpr int kMoveThreads = 256;

// A warp per particle. The first n_settle have proposals with margins: they are accepted or not. Then the
// first n_propose (at most n_settle, or there is nothing to settle) get their proposals of step `step`.
__global__ void __launch_bounds__(kMoveThreads)
    move_step(MoveArgs a, std::uint32_t n_settle, std::uint32_t n_propose, std::uint32_t step) {
  const std::uint32_t i = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
  const int lane = static_cast<int>(threadIdx.x % 32), length = a.tables.sample.length;
  if (i >= max(n_settle, n_propose)) return;
  const std::uint32_t g_index = a.group[i];
  const DeviceGroup& g = a.groups[g_index];
  std::uint32_t *now = a.rows + static_cast<std::size_t>(i) * length,
                *next = a.proposed + static_cast<std::size_t>(i) * length;
  if (i < n_settle) {
    const std::uint32_t note = a.note[i], kind = note & 3;
    const bool accept = kind != kNoMove && a.margin[i] >= g.level;
    if (accept)
      for (int p = lane; p < length; p += 32) now[p] = next[p];
    if (lane == 0 && kind != kNoMove) {
      MoveCounts& counts =
          a.counts[(static_cast<std::size_t>(g_index) * kMoveKinds + kind) * length + (note >> 2)];
      atomicAdd(&counts.proposed, 1u);
      if (accept) atomicAdd(&counts.accepted, 1u);
    }
  }
  if (i >= n_propose) return;
  for (int p = lane; p < length; p += 32) next[p] = now[p];  // each lane wrote what it reads
  __syncwarp();
  if (lane != 0) return;
  const std::uint64_t particle = g.first_particle + (i - g.begin);
  const std::uint64_t index = step_index(g.level_number, g.first_step + step, particle);
  a.note[i] = propose(a.tables, g, a.cumulative + static_cast<std::size_t>(g_index) * length, index, next);
}

}  // namespace deeptail::cuda
