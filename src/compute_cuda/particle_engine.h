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
  std::size_t base = 0;              // the law that they move under: 0, or as add_base() called it
  std::uint32_t first_particle = 0;  // number of the first one within its population
  std::uint64_t seed = 0;
  std::uint32_t level_number = 0, first_step = 0, n_steps = 0;
  float level = 0.0f;  // a proposal is accepted iff its margin is at least this
  std::uint32_t block = 1;
  double suffix_share = 0.0, block_share = 0.0;
  const double* cumulative = nullptr;  // [parts of the law], on the host
};

// What the moves of one group did. Proposals that changed nothing are not among them.
struct MoveCounts {
  std::uint32_t proposed = 0, accepted = 0;
};
struct GroupCounts {
  std::span<const MoveCounts> single;  // [length + 1]: by the part that was drawn anew
  MoveCounts block, suffix;
  std::span<const std::uint32_t> from;  // [length]: all proposals, by the first position that changed
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
  // Throws Failure when the device cannot do it. The inputs' own law is base 0.
  ParticleEngine(const DenseModel& model, const DenseInputs& inputs, const ParticleEngineOptions& options);
  ~ParticleEngine();

  // Memory that the device reads and writes: the particles of all groups, one group after the other.
  struct Lane {
    std::span<std::uint32_t> rows;    // [max_particles, length]: rows of DenseInputs
    std::span<std::uint32_t> states;  // [max_particles, length + 1] in the same place: for move()
    std::span<float> margin;          // [max_particles]
    std::span<std::uint32_t> other;   // [max_particles]: the token that the margin is against
  };
  const Lane& lane(std::size_t i) const;
  const ParticleEngineOptions& options() const;

  // rows -> margin, other. Returns when it is done.
  void score(std::size_t lane, std::span<const ParticleGroup> groups);
  // states (the rows that positions have drawn, then the number of a plant or kNoPlant) -> states after the
  // moves [first_step, first_step + n_steps) of each group, which must come in descending order of n_steps.
  // Returns when it is done.
  void move(std::size_t lane, std::span<const MovingGroup> groups);
  GroupCounts counts(std::size_t lane, std::size_t group) const;  // of the last move()

  // Another law to move under; its number. Any thread, at any time; nothing waits for the lanes.
  std::size_t add_base(const DenseBase& base);
  void remove_base(std::size_t base);  // no lane moves under it any more

  // As score(), but margins only, and in fp16, as move() looks at proposals first; those of a group do not
  // depend on the others. False where all margins are exact, since the model has other sizes: then nothing was
  // done.
  bool score_fast(std::size_t lane, std::span<const ParticleGroup> groups);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace deeptail::cuda
