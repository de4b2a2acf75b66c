// The Markov chains of mhis, a group of them per worker. What a chain does depends on the seed and its number
// alone.
#pragma once

#include "deeptail/mhis.h"
#include "estimators/token_gradients.h"

namespace deeptail {

struct ChainProblem {
  const Transformer& model;
  const Distribution& dist;
  const Target& target;
  const TokenGradients& gradients_of;
  const GradientEngine& engine;
  const MarginTest& test;
  const FirstLayerTable* table;
};

// What the chains leave behind after the burn-in: [chains, steps].
struct ChainRecord {
  ChainRecord(std::size_t chains, std::size_t n_steps)
      : steps(n_steps), values(chains * n_steps), events(chains * n_steps) {}
  std::size_t steps;
  std::vector<float> values;         // target logits
  std::vector<std::uint8_t> events;  // whether the target was said
};

class ChainGroup {
 public:
  // Chains [first, first + count).
  ChainGroup(const ChainProblem& problem, const MhisConfig& config, std::size_t first, std::size_t count);

  // Runs steps [begin, end) of every chain; those from config.burn_in on go into the record.
  void run(std::uint64_t begin, std::uint64_t end, ChainRecord& record);

  std::uint64_t accepted() const { return accepted_; }
  const std::vector<Trigger>& triggers() const { return triggers_; }  // the first ones of each chain
  // Of the group's chain i now: [length].
  std::span<const TokenId> tokens(std::size_t i) const;

 private:
  void pick_positions(std::uint64_t step);
  // logits_[i] <- log prior + score / temperature of every token at chain i's picked position, by these
  // gradients.
  void find_logits(const AlignedVector<float>& gradients);
  std::size_t table_size(std::size_t i) const;  // of chain i's picked position
  // log of the softmax of logits_[i] at this place; logits_[i] is lost.
  double log_chance(std::size_t i, std::size_t place);
  void propose(std::uint64_t step);
  void decide(std::uint64_t step);
  void take(std::size_t i);  // the proposal becomes the state
  void record_step(std::uint64_t step, ChainRecord& record);
  void find_events();
  float* logits(std::size_t i) { return logits_.data() + i * logit_stride_; }

  const ChainProblem& problem_;
  const MhisConfig& config_;
  std::size_t first_, count_, length_, n_free_, d_model_, logit_stride_;
  GradientPass pass_;
  MarginTest::ScratchPtr scratch_;
  std::uint64_t accepted_ = 0;
  std::vector<Trigger> triggers_;
  std::vector<std::size_t> n_triggers_;  // [count]

  struct States {
    std::vector<TokenId> tokens;     // [count, length]
    std::vector<float> values;       // [count]
    AlignedVector<float> resid;      // [count, d_model]
    AlignedVector<float> gradients;  // [count, n_free, d_model]
  };
  States now_, proposed_;
  enum class Event : std::uint8_t { kNo, kYes, kUnknown };
  std::vector<Event> events_;           // [count]; found out when a state is first recorded
  std::vector<std::size_t> picked_;     // [count]: number of the free position
  std::vector<double> log_forward_;     // [count]: log q of the proposed token
  std::vector<float> prior_ratio_;      // [count]: log p(proposed token) - log p(token now)
  std::vector<std::size_t> old_place_;  // [count]: of the token now in its table
  AlignedVector<float> rows_, scores_, logits_;
  std::vector<std::size_t> open_;   // chains of one table, or with unknown events
  std::vector<std::uint8_t> said_;  // [count]
};

}  // namespace deeptail
