// Where the populations of one estimate live, and what they take there. Chosen once (tokensplit.cpp,
// many.cpp).
#pragma once

#include <algorithm>
#include <memory>

#include "estimators/tokensplit/plan.h"
#include "estimators/tokensplit/probe.h"
#include "estimators/tokensplit/served_particles.h"

namespace deeptail {

inline constexpr std::size_t kMostWaiting = 64;  // threads that wait for what others compute

// This machine's threads.
struct CpuPlace {
  static constexpr Device kDevice = Device::kCpu;
  TokenProblem problem;

  // The same problem with populations under a component of a mixture.
  CpuPlace under(const Mixture& mixture, std::size_t c) const {
    return {{.model = problem.model,
             .law = mixture.law(c),
             .event = problem.event,
             .table = problem.table,
             .screen = problem.screen,
             .mixture = &mixture}};
  }
  CpuProbe probe(Inputs& contexts, std::size_t count, ThreadPool& pool) const {
    return {problem, contexts, count, pool};
  }
  InputParticles population(std::size_t max_particles, MovePolicy& policy, ThreadPool& pool) const {
    return {problem, max_particles, policy, pool};
  }
  // Replicas of all laws run side by side, each on its share of the threads: nothing waits between moves, unless scores
  // come from elsewhere.
  std::size_t replicas_at_once(const TokensplitConfig& config, std::size_t laws, std::size_t threads) const {
    return std::min(waits() ? kMostWaiting : threads, config.replicas * laws);
  }
  bool waits() const { return !problem.event.runs_model(); }
  double bytes(const Sizes& sizes) const {  // of one replica
    return sizes.bytes(problem.event.bytes(problem.model.config(), problem.law), problem);
  }
};

// A device that other targets share.
struct ServedPlace {
  static constexpr Device kDevice = Device::kCuda;
  TokenProblem problem;
  ParticleService& service;
  std::shared_ptr<const ServedBase> base = {};  // null: the prior

  ServedPlace under(const Mixture& mixture, std::size_t c) const {
    return {{.model = problem.model, .law = mixture.law(c), .event = problem.event, .mixture = &mixture},
            service,
            std::make_shared<const ServedBase>(service, mixture.component(c))};
  }
  ServedProbe probe(Inputs& contexts, std::size_t count, ThreadPool&) const {
    return {problem, contexts, count, service};
  }
  ServedParticles population(std::size_t, MovePolicy& policy, ThreadPool& pool) const {
    return {problem, base.get(), service, policy, pool};
  }
  // Every replica has a thread that mostly waits.
  static std::size_t replicas_at_once(const TokensplitConfig& config, std::size_t, std::size_t) {
    return std::min(kMostWaiting, config.replicas);
  }
  static bool waits() { return false; }  // many targets do
  double bytes(const Sizes& sizes) const { return sizes.token_bytes(problem.length()); }
};

}  // namespace deeptail
