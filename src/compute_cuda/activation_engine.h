// Populations of ga-amls on the device: points in whitened coordinates that move under a product prior while
// their margin stays above a level. No device types here.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "compute_cuda/dense.h"

namespace deeptail::cuda {

// From a whitened point u to the margin: x = mean of its group + u unwhitening, then the norm and the
// unembedding.
struct DenseHead {
  std::size_t d = 0, d_vocab = 0;
  std::vector<float> unwhitening;  // [d, d]
  std::vector<float> means;        // [n_groups, d]; without groups the one mean
  std::vector<double> cumulative;  // [n_groups]: of the groups' probabilities; empty without groups
  std::vector<float> ln_w, ln_b;   // [d], or empty: no norm
  float eps = 1e-5f;
  std::span<const float> w_u_panels;  // [d_vocab / 16][d][16], as PackedMatrix keeps them, zeros at the end
  std::vector<float> b_u;             // [d_vocab]
};

struct DensePrior {
  bool gaussian = false;
  double nu = 5.0, scale = 1.0;
};

enum class MoveKernel { kRwmh, kMala, kMapla, kPcn };

// The moves of a level, the same for all populations.
struct MoveSchedule {
  std::size_t moves = 0, burn_in = 0, group_every = 2;
  double adaptation = 0.0, wanted = 0.0;  // h <- h exp(adaptation (acceptance - wanted)) in the burn-in
  double largest = 1e300;                 // step size
  // [moves], or empty. Above 0: the move is one of pcn, with this step size.
  std::vector<double> tail_steps = {};
};

// One population's level.
struct LevelMoves {
  std::size_t slot = 0;
  float level = 0.0f;
  std::uint64_t number = 0, seed = 0;  // of the level, of the run
  double step_size = 0.0;              // at the first move
};

struct MovesDone {
  std::uint64_t proposed = 0, accepted = 0, scored = 0;
  double step_size = 0.0;
  double mean_squared_jump = 0.0, correlation = 0.0;  // as measure_jump
};

// What an engine has room for.
struct EngineRoom {
  std::size_t populations = 1, particles = 0;  // of each
  std::size_t target = 1;                      // tokens of a target
};

// Populations in slots, each with a target, a level and numbers of its own. What becomes of one does not depend on
// the others: every row is computed by itself.
class ActivationEngine {
 public:
  // Throws Failure when the device cannot do it. plain: products as on devices other than Hopper, for tests.
  ActivationEngine(const DenseHead& head, const DensePrior& prior, MoveKernel kernel, const EngineRoom& room,
                   bool plain = false);
  ~ActivationEngine();
  // Populations that half of the device's free memory has room for.
  static std::size_t fitting(std::size_t d, std::size_t d_vocab, std::size_t particles, std::size_t moves);

  void set_target(std::size_t slot, std::span<const std::uint32_t> ids);
  // u: [n, d]; groups: [n], or empty without groups.
  void set(std::size_t slot, std::span<const float> u, std::span<const std::uint32_t> groups);
  std::size_t size(std::size_t slot) const;
  std::vector<std::vector<float>> scores(std::span<const std::size_t> slots);  // [slots][n]: margins
  void resample(std::size_t slot, std::span<const std::uint32_t> parents);
  // All populations together, each once.
  std::vector<MovesDone> move(const MoveSchedule& schedule, std::span<const LevelMoves> levels);
  std::vector<float> points(std::size_t slot) const;          // [n, d]
  std::vector<std::uint32_t> groups(std::size_t slot) const;  // [n], or empty

  // Mean seconds of the parts of a move, over the given moves, each part timed apart.
  struct StageSeconds {
    double propose, unwhiten, normalise, maxima, settle;
  };
  StageSeconds time_stages(const MoveSchedule& schedule, std::span<const LevelMoves> levels);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace deeptail::cuda
