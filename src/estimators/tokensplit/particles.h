// Populations of inputs for the splitting loop, on this machine's threads.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "estimators/tokensplit/mixture.h"
#include "estimators/tokensplit/move_policy.h"

namespace deeptail {

// What is estimated. All must outlive the particles; table and screen may be null.
struct TokenProblem {
  const Transformer& model;
  const InputLaw& law;
  const Event& event;
  const FirstLayerTable* table = nullptr;
  const Screen* screen = nullptr;
  const Mixture* mixture = nullptr;  // where the law is one of its components; null: the law is the prior

  // What inputs that have the event pay, where that is due to the mixture.
  void log_payoffs(TokenBatch inputs, std::span<const std::uint32_t> who, std::span<double> out) const;
  std::size_t length() const { return law.facts().max_length; }
  // The law's, then the event's.
  std::size_t n_parts() const { return law.facts().n_parts + event.n_parts(); }
  std::vector<std::size_t> free_parts() const;  // that can change anything, ascending
  double score_flops() const { return event.score_flops(model.config(), law); }
};

// A particle is the numbers that its input, and an answer that is sampled, are made from.
class InputParticles final {
 public:
  InputParticles(const TokenProblem& problem, std::size_t max_particles, MovePolicy& policy,
                 ThreadPool& pool);

  void sample(std::size_t n, std::uint64_t seed);
  std::size_t size() const { return inputs_.size(); }
  void scores(std::span<double> out);
  void resample(std::span<const std::uint32_t> parents);
  MoveStats move(double level, std::size_t number, std::uint64_t seed) {
    return move_by_policy(*this, policy_, level, number, seed);
  }
  bool stopped() const { return policy_.stopped(); }
  void log_payoffs(std::span<const std::uint32_t> who, std::span<double> out) const;
  bool pays_below() const { return problem_.event.pays(); }

  TokenBatch inputs() const { return inputs_.batch(); }
  // Of events with answers: what follows each input, and what each is paid for. Of others: empty.
  TokenBatch answers() const { return answers_.batch(); }
  TokenBatch paid_answers() const { return paid_.batch(); }
  // Inputs and answers side by side: all that moves change.
  TokenBatch texts() const;
  const Work& work() const { return work_; }

  // For move_by_policy.
  ScoreHints hints() const { return scorer_->hints(); }
  void hold(const ScoreHints& hints);
  MoveTally run_moves(const MoveRound& round, MoveStats& stats);
  std::size_t moves_at_once() const;

 private:
  // Numbers of n particles: the law's [n, n_parts] and the event's [n, n_parts].
  struct Numbers {
    std::vector<std::uint64_t> law, event;
  };
  std::size_t a_second() const;
  EventInputs scored() const { return {inputs_.batch(), numbers_.event}; }
  void propose(const MoveRound& round, std::size_t step);
  void redraw(std::size_t i, std::size_t part, std::uint64_t number);
  void propose_one(std::size_t i, const MoveRound& round, std::size_t step);
  void keep_changed(std::size_t i);
  void take_numbers(std::size_t i);
  void settle(MoveTally& tally, MoveStats& stats);
  void keep_answers(std::size_t first, std::size_t n);

  struct Move {
    MoveKind kind = MoveKind::kSingle;
    std::size_t part = 0;  // the first that was drawn anew
    bool answer = false;   // are some of them the event's?
    bool crossing = false;
  };

  TokenProblem problem_;
  MovePolicy& policy_;
  ThreadPool& pool_;
  std::size_t law_parts_, event_parts_;
  std::vector<std::size_t> free_;
  std::unique_ptr<Scorer> scorer_;
  bool is_held_ = false;  // does the scorer hold the present inputs?
  Numbers numbers_;
  Inputs inputs_;  // made from them
  std::size_t answer_length_;
  Inputs answers_, paid_;            // [particles, answer_length]
  std::vector<double> log_payoffs_;  // [particles], of events that pay
  mutable std::vector<TokenId> texts_;
  Work work_;
  // Of one step. Proposals that change the input or the event's numbers come first in changed_.
  Numbers proposed_;
  Inputs changed_;
  std::vector<std::uint64_t> changed_numbers_;  // [proposals, event's parts]
  std::vector<Move> moves_;                     // [particles]
  std::vector<Redraw> redraws_;
  std::vector<std::uint32_t> held_, first_changed_;
  std::vector<std::uint8_t> accept_;
};
static_assert(Paying<InputParticles>);

}  // namespace deeptail
