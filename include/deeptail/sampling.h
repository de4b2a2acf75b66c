// How a text goes on: the law of its next token as deployed, and texts that grow in batches with keys kept.
//
// A text's continuation depends on its tokens and on one 64-bit number per new token alone: the same for any batch, thread
// count and order, and whether it was decoded from its start or from kept keys.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "deeptail/core.h"
#include "deeptail/model.h"

namespace [[gnu::visibility("default")]] deeptail {

// As deployed, with the rules of HuggingFace's generate: logits are divided by the temperature, then cut to the top k, then
// to the top p of what is left.
struct SamplingConfig {
  double temperature = 1.0;
  bool greedy = false;             // the most likely token instead of a drawn one; at a tie the smaller id
  std::size_t top_k = 0;           // 0: all. Tokens that tie with the last one kept are kept too
  double top_p = 1.0;              // the smallest set of most likely tokens whose mass reaches it; ties by id
  std::vector<TokenId> stop = {};  // ids that end a text: kept as its last token, no part of what it says
  std::size_t max_tokens = 1;      // new tokens at most, a stop token included

  bool cuts() const { return top_k > 0 || top_p < 1.0; }
  bool stops(TokenId token) const;
  // Throws InputError.
  void validate(std::size_t d_vocab) const;
};

// The law of the next token of one text. Reused: one per worker, since setting it allocates nothing.
//
// Probabilities are weights over their total. Weights are floats in proportion to them, and add up in doubles; one below
// 1e-38 of the largest is 0.
class NextTokenLaw {
 public:
  NextTokenLaw(const SamplingConfig& config, std::size_t d_vocab);

  void set(std::span<const float> logits);  // [d_vocab], the largest of them finite; -inf: never

  std::size_t d_vocab() const { return logits_.size(); }
  TokenId most_likely() const { return most_likely_; }  // the smallest id at a tie
  bool kept(TokenId token) const { return in_law(index(token)); }
  // As deployed; -inf where it was cut off.
  double log_p(TokenId token) const;
  // With temperature, before anything was cut off.
  double log_p_before(TokenId token) const;

  std::span<const float> weights() const { return cuts_ ? cut_ : before_; }  // [d_vocab], as deployed
  double total() const { return cuts_ ? cut_total_ : before_total_; }
  std::span<const float> weights_before() const { return before_; }  // [d_vocab]
  double total_before() const { return before_total_; }
  double p(TokenId token) const { return static_cast<double>(weights()[index(token)]) / total(); }

  // The inverse of the distribution function, ids in ascending order.
  TokenId draw(std::uint64_t number) const;

  // The probability of the tokens for which keep(token) holds, as deployed; 0 where there is none.
  template <class Keep>
  double mass_where(Keep keep) const {
    return weight_where(keep) / total();
  }
  // Drawn from those tokens alone, in proportion to their probabilities; kEndOfText where they have none.
  template <class Keep>
  TokenId draw_where(Keep keep, std::uint64_t number) const;

 private:
  static std::size_t index(TokenId token) { return static_cast<std::size_t>(token); }
  bool in_law(std::size_t i) const;
  template <class Keep>
  double weight_where(Keep keep) const;
  void cut_to_top_k(std::size_t k);
  void cut_to_top_p(double p);
  void keep_only(TokenId token);

  double temperature_, top_p_;
  std::size_t top_k_;
  bool greedy_, cuts_;
  std::vector<float> logits_;          // [d_vocab]
  AlignedVector<float> before_, cut_;  // [d_vocab]
  std::vector<std::uint8_t> kept_;     // [d_vocab], where something is cut
  double before_total_ = 0.0, cut_total_ = 0.0, log_before_ = 0.0, log_cut_ = 0.0;
  float top_ = 0.0f;
  TokenId most_likely_ = 0;
  std::vector<double> block_sums_;  // of the weights as deployed
  std::vector<std::uint32_t> order_;
};

inline constexpr TokenId kEndOfText = -1;

// Texts in slots, with keys and values of their positions kept; grown token by token, all texts of a batch side by side.
class Decoder {
 public:
  // prefix: what all texts begin with, always; it is computed and kept once. n_slots texts, each of at most max_length tokens.
  // `model` and `pool` must outlive it.
  Decoder(const Transformer& model, std::size_t n_slots, std::size_t max_length, ThreadPool& pool,
          std::span<const TokenId> prefix = {});
  ~Decoder();
  Decoder(Decoder&&) noexcept;

  struct Text {
    std::size_t slot;
    TokenId* tokens;        // [max_length]; [0, length) are given, later ones are written
    std::size_t length;     // becomes what it is at the end
    std::size_t valid = 0;  // the slot holds the keys of these very tokens at positions [0, valid)
  };
  struct Choice {
    TokenId token = kEndOfText;  // kEndOfText: none, the text ends here
    bool last = false;           // it ends after this token, without logits of it
    Choice() = default;
    Choice(TokenId next, bool is_last = false) : token(next), last(is_last) {}
  };
  // The next token of text `text` (of the batch), which has `length` tokens now, from its logits [d_vocab]. Called by workers,
  // once for every text and step, at most one call per worker at a time; what it does must depend on that text alone.
  // A text of max_length tokens has ended: it is asked for no more.
  using Choose = std::function<Choice(std::size_t text, std::size_t length, std::span<const float> logits,
                                      std::size_t worker)>;
  // Until every text has ended. Computes positions [valid, length) of each first, but always the last one. Each slot at most
  // once. Afterwards the slot holds the keys of all positions that were computed: valid(slot).
  void run(std::span<Text> texts, const Choose& choose);

  // Slot `to` becomes a copy of slot `from` at positions [0, positions), of which `from` holds the keys.
  void copy(std::size_t from, std::size_t to, std::size_t positions);
  std::size_t valid(std::size_t slot) const;  // positions whose keys it holds, those of the prefix included

  std::size_t n_slots() const;
  std::size_t max_length() const;
  static std::size_t bytes_per_slot(const ModelConfig& config, std::size_t max_length,
                                    std::size_t n_prefix = 0);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// What follows each of many prompts, in new tokens alone. A stop token is the last one.
struct Continuations {
  std::size_t max_tokens = 0;
  std::vector<TokenId> tokens = {};         // [n, max_tokens]; 0 beyond a continuation's length
  std::vector<std::uint32_t> lengths = {};  // [n]
  std::size_t size() const { return lengths.size(); }
  std::span<const TokenId> of(std::size_t i) const {
    return std::span(tokens).subspan(i * max_tokens, lengths[i]);
  }
};
// numbers: [n, max_tokens]: number t of a text drives its t-th new token; none where decoding is greedy. Throws InputError where
// prompt and new tokens are more than the model takes.
Continuations continue_texts(const Transformer& model, const SamplingConfig& config, TokenBatch prompts,
                             std::span<const std::uint64_t> numbers, ThreadPool& pool);

// Floating-point operations of positions [first, length) of a text, with the logits of each.
double decoding_flops(const ModelConfig& config, std::size_t first, std::size_t length);

template <class Keep>
double NextTokenLaw::weight_where(Keep keep) const {
  const std::span<const float> w = weights();
  double sum = 0.0;
  for (std::size_t i = 0; i < w.size(); ++i)
    sum += keep(static_cast<TokenId>(i)) ? static_cast<double>(w[i]) : 0.0;
  return sum;
}

template <class Keep>
TokenId NextTokenLaw::draw_where(Keep keep, std::uint64_t number) const {
  const std::span<const float> w = weights();
  const double target = weight_where(keep) * (static_cast<double>(number >> 11) * 0x1.0p-53);
  double sum = 0.0;
  TokenId last = kEndOfText;
  for (std::size_t i = 0; i < w.size(); ++i) {
    if (!(w[i] > 0.0f) || !keep(static_cast<TokenId>(i))) continue;
    sum += static_cast<double>(w[i]);
    last = static_cast<TokenId>(i);
    if (sum > target) break;
  }
  return last;
}

}  // namespace deeptail
