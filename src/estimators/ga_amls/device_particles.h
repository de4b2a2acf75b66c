// The particles of ga-amls on a CUDA device: populations in slots of one engine, and one of them as what run_splitting
// takes, like ContinuousParticles.
//
// Every population is an ordinary blocking caller on a thread of its own. Levels have the same number of moves for all, so
// those that are under way wait for each other there, and their moves go to the device together. Results do not depend on
// who else is there.
#pragma once

#include <memory>

#include "deeptail/kernels.h"
#include "deeptail/splitting.h"
#include "splitting/start.h"

namespace deeptail {

namespace cuda {
class ActivationEngine;
}

class DevicePopulations {
 public:
  struct Problem {
    const Head& head;
    const Whitening& whitening;
    std::span<const float> group_means;  // [n_groups, d_model], or empty
    const ProductPrior& prior;
    const KernelConfig& kernel;
    std::span<const double> cumulative;  // of the groups' probabilities; empty without groups
    StartCloud start = {};
    bool plain = false;  // products as on devices other than Hopper, for tests
  };
  struct Room {
    std::size_t populations = 1,
                particles = 0;  // of each; fewer populations where the device has no room for them
    std::size_t target = 1;     // tokens of a target
  };
  // All of the problem must outlive it. Throws InputError where there is no device that can do it.
  DevicePopulations(const Problem& problem, const Room& room);
  ~DevicePopulations();
  std::size_t room() const;          // populations at a time
  cuda::ActivationEngine& engine();  // for measurements

 private:
  friend class DeviceParticles;
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

class DeviceParticles {
 public:
  // The target must outlive it, as must all others. There must be room for it.
  DeviceParticles(DevicePopulations& all, const Target& target, ThreadPool& pool);
  ~DeviceParticles();
  DeviceParticles(const DeviceParticles&) = delete;
  DeviceParticles& operator=(const DeviceParticles&) = delete;

  void sample(std::size_t n, std::uint64_t seed);
  std::size_t size() const { return n_; }
  void scores(std::span<double> out);
  void resample(std::span<const std::uint32_t> parents);
  MoveStats move(double level, std::size_t k, std::uint64_t seed);

  ConstRows rows();  // valid until the next call
  std::uint64_t score_evals() const { return score_evals_; }
  double device_seconds() const { return seconds_; }  // its share of the device's time
  std::size_t slot() const { return slot_; }

 private:
  void copy_now();

  DevicePopulations::Impl& all_;
  ThreadPool& pool_;
  std::size_t slot_;
  bool joined_ = false;
  std::size_t n_ = 0;
  std::vector<std::uint32_t> parents_;  // of copies that are to be made before the next moves
  std::vector<float> scores_;           // [n], where they are known
  double h_ = 0.0;                      // goes on from level to level
  std::uint64_t score_evals_ = 0;
  double seconds_ = 0.0;
  std::vector<float> downloaded_;
};

}  // namespace deeptail
