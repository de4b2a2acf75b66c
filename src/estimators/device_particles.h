// The particles of ga-amls on a CUDA device: what run_splitting takes, like ContinuousParticles.
#pragma once

#include <memory>

#include "deeptail/kernels.h"
#include "deeptail/splitting.h"
#include "splitting/start.h"

namespace deeptail {

namespace cuda {
class ActivationEngine;
}

class DeviceParticles {
 public:
  struct Problem {
    const Head& head;
    const Target& target;
    const Whitening& whitening;
    std::span<const float> group_means;  // [n_groups, d_model], or empty
    const ProductPrior& prior;
    const KernelConfig& kernel;
    std::span<const double> cumulative;  // of the groups' probabilities; empty without groups
    StartCloud start = {};
    bool plain = false;  // products as on devices other than Hopper, for tests
  };
  // All of the problem must outlive it. Throws InputError where there is no device that can do it.
  DeviceParticles(const Problem& problem, std::size_t n_particles, ThreadPool& pool);
  ~DeviceParticles();

  void sample(std::size_t n, std::uint64_t seed);
  std::size_t size() const;
  void scores(std::span<double> out);
  void resample(std::span<const std::uint32_t> parents);
  MoveStats move(double level, std::size_t k, std::uint64_t seed);

  ConstRows rows();  // valid until the next call
  std::uint64_t score_evals() const;
  cuda::ActivationEngine& engine();  // for measurements

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace deeptail
