// One move of every particle of a batch: accepted iff the margin reaches the group's level.
#pragma once

#include "compute_cuda/particle_engine.h"
#include "compute_cuda/tokens/propose.cuh"

namespace deeptail::cuda {

struct MoveArgs {
  int length;
  const DeviceGroup* groups;
  const double* cumulative;         // [groups, length + 1]
  const std::uint32_t* group;       // [n]: of each particle
  std::uint32_t *states, *changed;  // [n, length + 1]: where they are, and where they would go
  std::uint32_t* proposed;          // [n, length]: rows that are seen of the latter
  const float* margin;              // [n]: of the proposals
  MoveNote* note;                   // [n]: what was proposed
  MoveCounts* counts;               // [groups, count_slots(length)]
  std::uint32_t* from;              // [groups, length]: proposals by the first position that changed
};

// Counts of a group: single moves by their part, then block moves, then suffix moves.
__host__ __device__ constexpr std::size_t count_slots(std::size_t length) { return length + 1 + 2; }
__host__ __device__ constexpr std::size_t count_slot(MoveKind kind, std::size_t length, std::size_t part) {
  return kind == MoveKind::kSingle ? part : length + static_cast<std::size_t>(kind);
}

inline constexpr int kMoveThreads = 256;

// By a warp. What changes nothing that is seen is taken as it is: the margin stays.
__device__ inline void settle(const MoveArgs& a, std::uint32_t i, int lane, std::uint32_t* now,
                              const std::uint32_t* next) {
  const std::uint32_t g = a.group[i];
  const MoveNote note = a.note[i];
  const bool accept = note.kind == kNoMove || a.margin[i] >= a.groups[g].level;
  if (accept)
    for (int p = lane; p <= a.length; p += 32) now[p] = next[p];
  if (lane != 0 || note.kind == kNoMove) return;
  MoveCounts& counts =
      a.counts[g * count_slots(a.length) + count_slot(static_cast<MoveKind>(note.kind), a.length, note.part)];
  atomicAdd(&counts.proposed, 1u);
  if (accept) atomicAdd(&counts.accepted, 1u);
  atomicAdd(&a.from[static_cast<std::size_t>(g) * a.length + note.position], 1u);
}

// A warp per particle. The first n_settle have proposals with margins: they are accepted or not. Then the
// first n_propose (at most n_settle, or there is nothing to settle) get their proposals of step `step`.
__global__ void __launch_bounds__(kMoveThreads)
    move_step(MoveArgs a, std::uint32_t n_settle, std::uint32_t n_propose, std::uint32_t step) {
  const std::uint32_t i = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
  const int lane = static_cast<int>(threadIdx.x % 32);
  if (i >= max(n_settle, n_propose)) return;
  const std::size_t width = static_cast<std::size_t>(a.length) + 1;
  std::uint32_t *now = a.states + i * width, *next = a.changed + i * width,
                *rows = a.proposed + i * (width - 1);
  if (i < n_settle) settle(a, i, lane, now, next);
  if (i >= n_propose) return;
  __syncwarp();
  const std::uint32_t g_index = a.group[i];
  const DeviceGroup& g = a.groups[g_index];
  const DensePlant plant = plant_of(g.base, now);
  for (int p = lane; p <= a.length; p += 32) {
    next[p] = now[p];
    if (p < a.length) rows[p] = seen_row(plant, now, static_cast<std::uint32_t>(p));
  }
  __syncwarp();
  if (lane != 0) return;
  const std::uint64_t particle = g.first_particle + (i - g.begin);
  const std::uint64_t index = step_index(g.level_number, g.first_step + step, particle);
  a.note[i] = propose(g, a.cumulative + g_index * width, index, next, rows);
}

}  // namespace deeptail::cuda
