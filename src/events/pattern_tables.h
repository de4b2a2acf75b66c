// What a pattern's automaton says of texts on their way: may it still be accepted, can it begin anew, and how likely is
// it to be finished from here.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "deeptail/patterns.h"
#include "deeptail/sampling.h"

namespace deeptail {

class PatternTables {
 public:
  // chances: [n_states], above 0; empty: a guess by the number of tokens that are missing.
  PatternTables(const TokenAutomaton& automaton, std::size_t max_tokens, std::vector<double> chances = {});

  std::span<const double> chances() const { return chances_; }
  // May a text in this state still be accepted with `left` more tokens?
  bool open(std::uint32_t state, std::size_t left) const { return open_[left * n_states_ + state] != 0; }
  // Has nothing of the pattern begun in this state, at step t? Where a root is accepted at the end of a text, all that may
  // come to that has begun with the text: then the only root is where it starts.
  bool is_root(std::uint32_t state, std::size_t t) const { return from_start_ ? t == 0 : roots_[state] != 0; }
  // Can a text in this state come to a root after its next token?
  bool returns(std::uint32_t state) const { return returns_[state] != 0; }
  // Whoever leaves the roots is accepted by that very token.
  bool one_step() const { return one_step_; }

  // States outside the roots by their chance, falling.
  std::span<const std::uint32_t> best() const { return best_; }

  // [n_states]: the chance to finish, with `left` more tokens, for texts that have left the roots; 0 for roots, which
  // begin anew, and where there is no way.
  std::span<const double> outside(std::size_t left) const {
    return std::span(outside_).subspan(left * n_states_, n_states_);
  }

 private:
  std::size_t n_states_;
  std::vector<double> chances_;        // [n_states]
  std::vector<std::uint8_t> open_;     // [max_tokens + 1, n_states]
  std::vector<std::uint8_t> returns_;  // [n_states]
  std::vector<double> outside_;        // [max_tokens + 1, n_states]
  std::vector<std::uint32_t> best_;
  std::vector<std::uint8_t> roots_;  // [n_states]
  bool one_step_ = false, from_start_ = false;
};

// sum over tokens of weight times value of where the token leads: weights [d_vocab], next [d_vocab], values [n_states].
double sum_of_values(std::span<const float> weights, std::span<const std::uint32_t> next,
                     std::span<const double> values);
// A token drawn by its probability as NextTokenLaw::draw does, but tokens that lead where it is worth most come first. So a
// small number u is a good one after any text; how good is min(best, chance / u), with `chance` that of the pattern before
// the token is drawn. That is at least the value of where the token leads, and chance where u is 1.
struct OrderedDraw {
  TokenId token = kEndOfText;
  double best = 0.0;  // value of all tokens that can be drawn
};
// best: PatternTables::best().
OrderedDraw draw_in_order(std::span<const float> weights, double total, std::span<const std::uint32_t> next,
                          std::span<const double> values, std::span<const std::uint32_t> best,
                          std::uint64_t number);
// The weight of all tokens that lead where a value is above 0.
double weight_of_values(std::span<const float> weights, std::span<const std::uint32_t> next,
                        std::span<const double> values);
// A token drawn in proportion to weight times value, where that is above 0, and `more`; sum: of them all, above 0.
TokenId draw_by_value(std::span<const float> weights, std::span<const std::uint32_t> next,
                      std::span<const double> values, double more, double sum, std::uint64_t number);

}  // namespace deeptail
