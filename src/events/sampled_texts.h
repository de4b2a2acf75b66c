// Texts that a model goes on with after inputs of a law: decoded in batches, and changed copies of those that are
// held from their first change on.
//
// What a text says depends on its input and its numbers alone: number t draws its t-th new token.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "deeptail/event.h"
#include "deeptail/sampling.h"

namespace deeptail {

// The texts of a batch, row by row.
struct TextRows {
  std::size_t width = 0;                    // the longest input and its answer
  std::vector<TokenId> tokens = {};         // [n, width]: inputs, then answers
  std::vector<std::uint32_t> prompt = {};   // [n]: tokens of the input
  std::vector<std::uint32_t> length = {};   // [n]: of the whole text
  std::vector<std::uint64_t> numbers = {};  // [n, max_tokens]; none for greedy texts
  void resize(std::size_t n, std::size_t row_width, std::size_t n_numbers);
  std::size_t size() const { return length.size(); }
  std::size_t steps(std::size_t i) const { return length[i] - prompt[i]; }  // tokens of the answer
  std::span<const TokenId> input(std::size_t i) const { return {tokens.data() + i * width, prompt[i]}; }
  std::span<const TokenId> answer(std::size_t i) const {
    return {tokens.data() + i * width + prompt[i], length[i] - prompt[i]};
  }
};

class SampledTexts {
 public:
  // All must outlive it.
  SampledTexts(const Transformer& model, const InputLaw& law, const SamplingConfig& sampling,
               std::size_t max_held, ThreadPool& pool);

  // The rows to decode: whole texts, or changed copies of held ones.
  void set(const EventInputs& inputs);
  void set_changed(const Proposals& proposals);

  const TextRows& rows() const { return rows_; }
  // The first step of a row that is decoded; those before it are its held text's. It is at least the row's steps where
  // nothing of the text changes.
  std::size_t first_step(std::size_t row) const { return first_step_[row]; }
  bool is_same(std::size_t row) const { return same_[row] != 0; }  // as the held one: it is not decoded
  std::size_t held_of(std::size_t row) const { return held_of_[row]; }

  // The t-th new token of a row, and whether it is the last one; called by workers, step by step. What comes from
  // `law`, which is that of the next token, must be taken by then. next() is the usual answer.
  using Step = std::function<Decoder::Choice(std::size_t row, std::size_t t, const NextTokenLaw& law)>;
  Decoder::Choice next(std::size_t row, std::size_t t, const NextTokenLaw& law) const;
  // Decodes all rows, some at a time. done: told of rows [first, first + n) while their keys are there: keep() and
  // branch() are for it. The work is that of decoding.
  using Done = std::function<void(std::size_t first, std::size_t n)>;
  double decode(const Step& step, const Done& done);
  // The usual way: every token drawn by its number.
  double decode(const Done& done);

  // Row `row` is held from now on: in place of what it is a copy of, or as text number `row`.
  void keep(std::size_t row);
  const TextRows& held() const { return held_; }

  // Decodes on from where rows have `length` tokens, which are theirs. Keys after that are lost, so rows can be kept no
  // more; a row may branch again at the same length or an earlier one. tokens: [width] each.
  struct Branch {
    std::size_t row;
    TokenId* tokens;
    std::size_t length;
  };
  // step: (index of the branch, tokens of it so far, law) -> next. Returns flops.
  using BranchStep =
      std::function<Decoder::Choice(std::size_t branch, std::size_t length, const NextTokenLaw& law)>;
  double branch(std::span<Branch> branches, const BranchStep& step);

  static std::size_t rows_at_once();
  static ScorerBytes bytes(const ModelConfig& config, const InputLaw& law, const SamplingConfig& sampling);

 private:
  double run_rows(std::size_t first, std::size_t n, const Step& step);
  void copy_held_row(std::size_t row, std::size_t held, std::size_t length);

  const ModelConfig& config_;
  const SamplingConfig& sampling_;
  std::size_t width_, n_numbers_, n_scratch_;
  Decoder decoder_;
  std::vector<NextTokenLaw> laws_;  // [worker]
  TextRows rows_, held_;
  std::vector<std::uint32_t> first_step_, held_of_, valid_;  // [rows]
  std::vector<std::uint8_t> same_;                           // [rows]
  bool copies_ = false;                                      // of held ones
  std::vector<std::size_t> held_slot_;                       // [max_held]
  std::vector<std::size_t> scratch_;                         // [n_scratch]: slots of the rows in work
  std::size_t first_in_work_ = 0;
  std::vector<Decoder::Text> texts_;
  std::vector<std::size_t> row_of_;          // [texts_]
  std::vector<std::uint32_t> calls_;         // [texts_]
};

}  // namespace deeptail
