// Splitting on a state of your own: four functions that know it, and the loop that knows nothing of it.
//
//   std::vector<State> states;
//   AnyParticles particles({.sample = ..., .scores = ..., .resample = ..., .move = ...});
//   const SplittingRun run = run_splitting(particles, {.levels = {-2.0, -1.0, 0.0}}, seed);
//
// The answer is unbiased where the levels are fixed beforehand and move leaves (prior given score >= level)
// as it is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <utility>

#include "deeptail/splitting.h"

namespace [[gnu::visibility("default")]] deeptail {

class AnyParticles {
 public:
  // What each must do is told at the concept Particles. Random numbers should depend on the seed, the level's
  // number and the particle alone; then so does the answer.
  struct Functions {
    std::function<void(std::size_t n, std::uint64_t seed)> sample;
    std::function<void(std::span<double> out)> scores;  // out: [particles]
    // There may be more or fewer of them than before.
    std::function<void(std::span<const std::uint32_t> parents)> resample;
    std::function<MoveStats(double level, std::size_t number, std::uint64_t seed)> move;
  };
  explicit AnyParticles(Functions functions) : functions_(std::move(functions)) {}

  void sample(std::size_t n, std::uint64_t seed) {
    functions_.sample(n, seed);
    size_ = n;
  }
  std::size_t size() const { return size_; }
  void scores(std::span<double> out) { functions_.scores(out); }
  void resample(std::span<const std::uint32_t> parents) {
    functions_.resample(parents);
    size_ = parents.size();
  }
  MoveStats move(double level, std::size_t number, std::uint64_t seed) {
    return functions_.move(level, number, seed);
  }

 private:
  Functions functions_;
  std::size_t size_ = 0;
};
static_assert(Particles<AnyParticles>);

}  // namespace deeptail
