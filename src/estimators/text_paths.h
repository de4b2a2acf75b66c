// Sampled continuations as paths for run_trajectories: the score of a prefix is the log of its chance to finish the
// pattern from there without starting anew.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "deeptail/continuation.h"
#include "deeptail/estimators.h"
#include "events/pattern_tables.h"
#include "splitting/trajectories.h"

namespace deeptail {

class TextPaths {
 public:
  // Asked between batches of texts: go on?
  using GoesOn = std::function<bool(const Work& work)>;
  // All must outlive it.
  TextPaths(const Transformer& model, const InputLaw& law, const ContinuationEvent& event,
            std::size_t n_paths, ThreadPool& pool, GoesOn goes_on);

  void sample(std::size_t n, std::uint64_t seed);
  void maxima(std::span<double> out) const;
  bool branch(std::span<const PathBranch> branches, double level, std::size_t step, std::uint64_t seed);

  const Work& work() const { return work_; }
  // Those that have the event, at most so many.
  std::vector<Trigger> triggers(std::size_t most) const;
  static double bytes(const ModelConfig& config, const InputLaw& law, const SamplingConfig& sampling);

 private:
  struct Path {
    std::size_t prompt = 0, length = 0;      // tokens
    std::vector<std::uint32_t> states = {};  // [steps + 1]: before each token, and at the end
    std::vector<double> scores = {};         // [steps]: of the prefix before each token
    bool happened = false;
  };
  // Goes on with the paths `who`, from the keys that their slots hold; number t of path i is number(i, t).
  using Number = std::function<std::uint64_t(std::size_t path, std::size_t t)>;
  void go_on(std::span<const std::uint32_t> who, std::span<const std::size_t> valid, const Number& number);
  Decoder::Choice step(std::size_t path, std::size_t t, NextTokenLaw& law, std::uint64_t number);
  TokenId* row(std::size_t path) { return tokens_.data() + path * width_; }

  const ModelConfig& config_;
  const InputLaw& law_;
  const ContinuationEvent& event_;
  ThreadPool& pool_;
  GoesOn goes_on_;
  std::size_t width_;
  Decoder decoder_;
  std::vector<NextTokenLaw> laws_;  // [worker]
  std::vector<TokenId> tokens_;     // [paths, width]
  std::vector<Path> paths_;
  Work work_;
};

}  // namespace deeptail
