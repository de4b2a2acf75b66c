// Margins and moves of token sequences on the device, many populations side by side. No device types here.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "compute_cuda/dense.h"

namespace deeptail::cuda {

// A proposal whose fp16 margin is closer than this to the level of its population is decided by the exact
// one. Rounding to fp16 was seen to change margins by 0.035 at most, 0.002 to 0.006 rms (docs/cuda.md);
// cuda_tokensplit_check fails above half of this.
inline constexpr float kSecondLook = 0.08f;

// The particles of one population that take part in a batch: all want the margin of one target.
struct ParticleGroup {
  std::uint32_t n_particles = 0;
  std::uint32_t target = 0;  // token id
};

// How they move (estimators/tokensplit/moves.h), and what they must keep.
struct MovingGroup : ParticleGroup {
  std::uint32_t first_particle = 0;  // number of the first one within its population
  std::uint64_t seed = 0;
  std::uint32_t level_number = 0, first_step = 0, n_steps = 0;
  float level = 0.0f;  // a proposal is accepted iff its margin is at least this
  std::uint32_t block = 1;
  double suffix_share = 0.0, block_share = 0.0;
  const double* cumulative = nullptr;  // [length], on the host
};

// What the moves of one group did, by the first position that changed.
struct MoveCounts {
  std::uint32_t proposed = 0, accepted = 0;
};
struct GroupCounts {
  std::span<const MoveCounts> single, block, suffix;  // [length] each
};

struct ParticleEngineOptions {
  std::size_t max_particles = 0;  // of a batch; 0: what suits the length
  std::size_t max_groups = 1 << 12;
  std::size_t lanes = 2;  // batches in flight
};

// A lane is a batch with room of its own. Lanes may be used by different threads; the device takes them in
// turn, so that one thread prepares its batch while another's runs.
class ParticleEngine {
 public:
  // Throws Failure when the device cannot do it.
  ParticleEngine(const DenseModel& model, const DenseInputs& inputs, const ParticleEngineOptions& options);
  ~ParticleEngine();

  // Memory that the device reads and writes: the particles of all groups, one group after the other.
  struct Lane {
    std::span<std::uint32_t> rows;   // [max_particles, length]: rows of DenseInputs
    std::span<float> margin;         // [max_particles]
    std::span<std::uint32_t> other;  // [max_particles]: the token that the margin is against
  };
  const Lane& lane(std::size_t i) const;
  const ParticleEngineOptions& options() const;

  // rows -> margin, other. Returns when it is done.
  void score(std::size_t lane, std::span<const ParticleGroup> groups);
  // rows -> rows after the moves [first_step, first_step + n_steps) of each group, which must come in
  // descending order of n_steps. Returns when it is done.
  void move(std::size_t lane, std::span<const MovingGroup> groups);
  GroupCounts counts(std::size_t lane, std::size_t group) const;  // of the last move()

  // As score(), but margins only, and in fp16, as move() looks at proposals first. For tests and
  // measurements. False where all margins are exact: the model has other sizes.
  bool score_fast(std::size_t lane, std::span<const ParticleGroup> groups);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace deeptail::cuda
