// A population of token sequences on a device that many populations share (service.h).
#pragma once

#include <limits>

#include "estimators/tokensplit/particles.h"
#include "estimators/tokensplit/service.h"

namespace deeptail {

class ServedParticles final {
 public:
  // The problem's event is one next token; its law is that of the base, or where there is none the one that
  // the device was made with.
  ServedParticles(const TokenProblem& problem, const ServedBase* base, ParticleService& service,
                  MovePolicy& policy, ThreadPool& pool);

  void sample(std::size_t n, std::uint64_t seed);
  std::size_t size() const { return tokens_.size() / length_; }
  void scores(std::span<double> out);
  void resample(std::span<const std::uint32_t> parents);
  MoveStats move(double level, std::size_t number, std::uint64_t seed) {
    return move_by_policy(*this, policy_, level, number, seed);
  }
  bool stopped() const { return policy_.stopped(); }
  void log_payoffs(std::span<const std::uint32_t> who, std::span<double> out) const {
    problem_.log_payoffs(inputs(), who, out);
  }
  static bool pays_below() { return false; }

  TokenBatch inputs() const { return {tokens_, length_}; }
  TokenBatch texts() const { return inputs(); }
  static TokenBatch answers() { return {}; }
  static TokenBatch paid_answers() { return {}; }
  const Work& work() const { return work_; }

  // For move_by_policy.
  ScoreHints hints() const { return {}; }
  void hold(const ScoreHints&);
  MoveTally run_moves(const MoveRound& round, MoveStats& stats);
  // The service has its own ways to stop.
  static std::size_t moves_at_once() { return std::numeric_limits<std::size_t>::max() / 2; }

 private:
  void count_forwards(std::size_t n);
  std::span<std::uint32_t> state(std::size_t i) {
    return std::span(states_).subspan(i * (length_ + 1), length_ + 1);
  }
  void begin(std::size_t i, std::span<const std::uint64_t> numbers);
  void show();

  TokenProblem problem_;
  const ModelConfig& config_;
  const ServedBase* base_;
  const PlantList* plants_;  // of the base; null: none
  TokenId target_;
  ParticleService& service_;
  MovePolicy& policy_;
  ThreadPool& pool_;
  std::size_t length_;
  std::vector<std::uint32_t> states_;  // [n, length + 1] (service.h)
  std::vector<TokenId> tokens_;        // [n, length]: what the model reads
  bool is_held_ = false;               // would a scorer on the CPU hold the present inputs?
  Work work_;
};
static_assert(Paying<ServedParticles>);

}  // namespace deeptail
