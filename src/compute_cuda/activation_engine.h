// Particles of ga-amls on the device: points in whitened coordinates that move under a product prior while
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
  std::vector<std::uint32_t> target;  // ids
};

struct DensePrior {
  bool gaussian = false;
  double nu = 5.0, scale = 1.0;
};

enum class MoveKernel { kRwmh, kMala, kMapla, kPcn };

// The moves of one level.
struct LevelMoves {
  float level = 0.0f;
  std::uint64_t number = 0, seed = 0;  // of the level, of the run
  std::size_t moves = 0, burn_in = 0, group_every = 2;
  double step_size = 0.0;                 // at the first move
  double adaptation = 0.0, wanted = 0.0;  // h <- h exp(adaptation (acceptance - wanted)) in the burn-in
  double largest = 1e300;                 // step size
};

struct MovesDone {
  std::uint64_t proposed = 0, accepted = 0, scored = 0;
  double step_size = 0.0;
  double mean_squared_jump = 0.0, correlation = 0.0;  // as measure_jump
};

class ActivationEngine {
 public:
  // Throws Failure when the device cannot do it. Room for max_particles, which start by set(). plain:
  // products as on devices other than Hopper, for tests.
  ActivationEngine(const DenseHead& head, const DensePrior& prior, MoveKernel kernel,
                   std::size_t max_particles, bool plain = false);
  ~ActivationEngine();

  // u: [n, d]; groups: [n], or empty without groups.
  void set(std::span<const float> u, std::span<const std::uint32_t> groups);
  std::size_t size() const;
  void scores(std::span<float> out);  // [n]: margins
  void resample(std::span<const std::uint32_t> parents);
  MovesDone move(const LevelMoves& moves);
  std::vector<float> points() const;          // [n, d]
  std::vector<std::uint32_t> groups() const;  // [n], or empty

  // Mean seconds of the parts of a move, over the given moves, each part timed apart.
  struct StageSeconds {
    double propose, unwhiten, normalise, maxima, settle;
  };
  StageSeconds time_stages(const LevelMoves& moves);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace deeptail::cuda
