// Where the populations of one estimate live, and what they take there. Chosen once (tokensplit.cpp,
// many.cpp).
#pragma once

#include <algorithm>

#include "estimators/tokensplit/plan.h"
#include "estimators/tokensplit/served_particles.h"

namespace deeptail {

// This machine's threads.
struct CpuPlace {
  static constexpr Device kDevice = Device::kCpu;
  TokenProblem problem;

  InputParticles population(std::size_t max_particles, MovePolicy& policy, ThreadPool& pool) const {
    return {problem, max_particles, policy, pool};
  }
  // Replicas run side by side, each on its share of the threads: nothing waits between moves.
  static std::size_t replicas_at_once(const TokensplitConfig& config, std::size_t threads) {
    return std::min(threads, config.replicas);
  }
  double bytes(const Sizes& sizes) const {  // of one replica
    return sizes.bytes(problem.event.bytes(problem.model.config(), problem.law), problem);
  }
};

// A device that other targets share.
struct ServedPlace {
  static constexpr Device kDevice = Device::kCuda;
  TokenProblem problem;
  ParticleService& service;

  ServedParticles population(std::size_t, MovePolicy& policy, ThreadPool& pool) const {
    return {problem, service, policy, pool};
  }
  // Every replica has a thread that mostly waits.
  static std::size_t replicas_at_once(const TokensplitConfig& config, std::size_t) {
    constexpr std::size_t kMostWaiting = 64;
    return std::min(kMostWaiting, config.replicas);
  }
  double bytes(const Sizes& sizes) const { return sizes.token_bytes(problem.length()); }
};

}  // namespace deeptail
