// Scores and payoffs of sampled continuations, by the states that their pattern's automaton goes through.
#pragma once

#include <memory>
#include <vector>

#include "deeptail/continuation.h"
#include "events/pattern_tables.h"
#include "events/sampled_texts.h"

namespace deeptail {

// What is kept of texts besides their tokens, row by row.
struct PatternTrace {
  std::size_t steps = 0;                  // of the longest answer
  std::vector<std::uint32_t> state = {};  // [n, steps + 1]: before each token, and at the end
  std::vector<double> chance = {};  // [n, steps]: to leave the roots and finish, from each step; as a guess
  // [n, steps]: the same as deployed, after top-k and top-p; where tokens are drawn in order: before a step's number was known
  std::vector<double> deployed = {};
  std::vector<double> open =
      {};  // [n, steps]: the probability of tokens that leave the roots, of texts that pay
  void resize(std::size_t n, std::size_t n_steps);
  void copy_row(const PatternTrace& from, std::size_t i, std::size_t j);  // row i of `from` becomes row j
  std::uint32_t& at(std::size_t row, std::size_t t) { return state[row * (steps + 1) + t]; }
  std::uint32_t at(std::size_t row, std::size_t t) const { return state[row * (steps + 1) + t]; }
  double g(std::size_t row, std::size_t t) const { return chance[row * steps + t]; }
};

// Sums of what texts in each state turned out to be worth.
struct ChanceSums {
  std::vector<double> worth = {}, visits = {};  // [n_states]
};

class PatternScorer final : public Scorer {
 public:
  // branches: of each text; 0: scores say how nearly the pattern was finished, and nothing is paid.
  PatternScorer(const ContinuationEvent& event, std::size_t branches, const Transformer& model,
                const InputLaw& law, const ScorerOptions& options, ThreadPool& pool);

  Work scores(const EventInputs& inputs, std::span<double> out) override;
  Work hold(const EventInputs& inputs, const ScoreHints& hints) override;
  Work rescore(const Proposals& proposals, std::span<double> out) override;
  Work decide(double level, const Proposals& proposals, std::span<std::uint8_t> accept) override;
  Crossing crossing(std::size_t held, double level) const override;
  TokenBatch answers() const override { return answers_.batch(); }
  std::span<const double> log_payoffs() const override { return log_payoffs_; }
  TokenBatch paid_answers() const override { return paid_.batch(); }

  void record(ChanceSums* sums) { sums_ = sums; }  // null: not
  // Of the last call of scores: the variance of what a text pays that is due to its branches alone, [n], and their
  // work.
  std::span<const double> branch_variances() const { return branch_variances_; }
  double branch_flops() const { return branch_flops_; }

 private:
  // A try to finish the pattern.
  struct Try {
    std::size_t row, first;  // the step at which it leaves the text
    std::uint32_t state;
    double worth = 1.0;
    std::vector<std::pair<std::uint32_t, double>> path = {};  // states, and the factor of each step
  };
  double decode(const SampledTexts::Done& done);
  void begin_rows();
  void take_answers();
  void keep_likely(std::size_t row, std::size_t t, const NextTokenLaw& law);
  void pay_for_likely(std::size_t row);
  bool take_held(const EventInputs& inputs, std::span<double> out);
  Decoder::Choice step(std::size_t row, std::size_t t, const NextTokenLaw& law);
  bool accepted(std::size_t row) const;
  bool ends_in_root(std::size_t row) const;  // and is accepted there: nothing has to be finished
  double score(std::size_t row) const;
  double score_near(std::size_t row) const;
  double roots_sum(std::size_t row, const std::vector<double>& of) const;  // chance or deployed, at the roots
  double pay(std::size_t first, std::size_t n);  // fills log_payoffs_; returns flops
  void choose_tries(std::size_t first, std::size_t n);
  double run_tries(std::size_t k);
  Decoder::Choice try_step(Try& one, std::size_t k, std::size_t t, const NextTokenLaw& law) const;
  void settle_tries(std::size_t k, std::span<const SampledTexts::Branch> branches);
  void record_path(const Try& one);

  const TokenAutomaton& automaton_;
  const PatternTables& tables_;
  const SamplingConfig& sampling_;
  const TextPattern& pattern_;
  std::size_t branches_;
  std::size_t n_numbers_;
  bool in_order_;  // tokens are drawn in the order of what they are worth: for scores that moves climb on
  SampledTexts texts_;
  PatternTrace trace_, held_trace_;
  std::vector<double> held_scores_;
  std::size_t n_held_ = 0;
  Inputs answers_, paid_;
  // Where one token is enough: the likeliest of each row, and its step.
  struct Likely {
    double p = 0.0;
    std::size_t step = 0;
    TokenId token = 0;
  };
  std::vector<Likely> likely_;                          // [n]
  std::vector<double> log_payoffs_, branch_variances_;  // [n]
  double branch_flops_ = 0.0;
  // Of the rows in work.
  std::vector<std::uint64_t> seeds_;                     // [n]
  std::vector<double> leads_;                            // [n, steps]: branches leave in proportion to these
  std::vector<double> root_sums_;                        // [n]: of them
  std::vector<double> paid_sums_, paid_squares_, best_;  // [n]
  std::vector<std::uint32_t> leave_at_;                  // [branches, n]
  std::vector<Try> tries_;
  std::vector<SampledTexts::Branch> branch_texts_;
  std::vector<TokenId> branch_tokens_;  // [n, width]
  std::size_t first_ = 0;
  ChanceSums* sums_ = nullptr;
};

}  // namespace deeptail
