// Populations of token sequences for the splitting loop: score = margin of the target.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "estimators/tokensplit/backend.h"
#include "events/next_token.h"

namespace deeptail {

// Work done, in its own units; flops are those of the algorithm (full passes over all positions, re-scoring
// from the first changed position on, logits that were looked at, a quarter of one for each that 8 bits
// settle).
struct TokenWork {
  std::uint64_t forwards = 0, rescored = 0, logits = 0;
  double flops = 0.0;
  double device_seconds = 0.0;  // of a device that others share
  TokenWork& operator+=(const TokenWork& other);
};

class TokenParticles {
 public:
  TokenParticles(const TokenProblem& problem, std::size_t max_particles, ThreadPool& pool);

  // Particles, all but move().
  void sample(std::size_t n, std::uint64_t seed);
  std::size_t size() const { return tokens_.size() / length(); }
  void scores(std::span<double> out) { scores(out, {}); }
  // Asks between pieces of about a second whether to go on (a device has its own ways to stop); false when it
  // did not: then the scores are not all there.
  bool scores(std::span<double> out, const std::function<bool()>& go_on);
  void resample(std::span<const std::uint32_t> parents);

  // Moves [first, first + count) of a level, all particles together.
  void run_moves(double level, std::size_t level_number, std::size_t first, std::size_t count,
                 const MoveSettings& settings, std::uint64_t seed, MoveStats& stats, MoveTally& tally);
  void begin_moves();  // call once per level

  std::span<const TokenId> tokens(std::size_t i) const {
    return std::span(tokens_).subspan(i * length(), length());
  }
  std::span<const TokenId> tokens() const { return tokens_; }      // [size, length]
  const std::vector<Margin>& margins() const { return margins_; }  // of the last scores(): [size]
  const TokenWork& work() const { return work_; }
  const TokenProblem& problem() const { return problem_; }
  const std::vector<std::size_t>& free() const { return free_; }
  std::size_t length() const { return problem_.dist.length(); }

 private:
  TokenProblem problem_;
  ThreadPool& pool_;
  std::vector<std::size_t> free_;
  std::unique_ptr<TokenBackend> backend_;
  std::vector<TokenId> tokens_;     // [n, length]
  std::vector<Margin> margins_;     // [n]
  std::vector<double> flops_from_;  // [length]: of re-scoring from each first changed position on
  TokenWork work_;
};

// The tokens that most often beat the target among these margins, most frequent first.
std::vector<TokenId> usual_winners(std::span<const Margin> margins);

}  // namespace deeptail
