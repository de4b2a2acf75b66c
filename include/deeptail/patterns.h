// Patterns in text, as automata: a string or a regular expression becomes a complete automaton on bytes, and that
// one on the tokens of a model, where all ways to write a text with tokens count (docs/patterns.md).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "deeptail/core.h"
#include "deeptail/text.h"

namespace [[gnu::visibility("default")]] deeptail {

// Complete and minimal. A text is accepted as soon as an accepting state is reached, whatever follows: these are
// one state, which leads to itself. accepting_at_end: the text may end here ($); so may it in an accepting state.
struct ByteDfa {
  std::vector<std::array<std::uint32_t, 256>> next;       // [n_states][byte]
  std::vector<std::uint8_t> accepting, accepting_at_end;  // [n_states]
  std::uint32_t start = 0;
  std::size_t size() const { return next.size(); }
  bool accepts(std::string_view text) const;  // a text that ends there
};
inline constexpr std::size_t kMaxDfaStates = 10'000;

// Any bytes, but not none. Throw InputError for texts that need more than kMaxDfaStates states.
ByteDfa starts_with(std::string_view text);
ByteDfa contains(std::string_view text);
// A regular expression (docs/patterns.md), looked for anywhere in the text unless it says ^; $ is the end of the
// text. where: how messages begin. Throws InputError for what it does not know, and what grows too large.
ByteDfa matches(std::string_view regex, std::string_view where);

struct ByteSpan {
  std::size_t begin, end;
};
// The first match of a text to end, cut as short as it can be and still match alone. Nothing: no match.
std::optional<ByteSpan> find_match(const ByteDfa& dfa, std::string_view text);

// What each token adds to a text, as the tokenizer's decoder has it. Special tokens, and ids without a token, add
// nothing (HuggingFace's skip_special_tokens).
struct TokenTexts {
  std::vector<std::string> text;  // [d_vocab]
  // [d_vocab]: where it is the first of a text, of which SentencePiece drops the space; empty: no difference.
  std::vector<std::string> first;

  // Whether these tokens have no text at all, so that the next one is the first of a text.
  bool nothing_in(std::span<const TokenId> tokens) const;
  // The text of a continuation: decode(prompt + continuation) without the decode(prompt) that it begins with.
  std::string continuation(std::span<const TokenId> prompt, std::span<const TokenId> tokens) const;
};
// Throws InputError for a decoder that changes a text as a whole.
TokenTexts token_texts(const Tokenizer& tokenizer, std::size_t d_vocab);

// The automaton over tokens: the step of a token is those of its bytes. Immutable.
class TokenAutomaton {
 public:
  // stop: tokens that end a text and are no part of it. Throws InputError where the table would not fit into memory.
  TokenAutomaton(const ByteDfa& dfa, const TokenTexts& texts, std::span<const TokenId> stop);
  // One of these tokens occurs; it may be a stop token.
  static TokenAutomaton any_of(std::span<const TokenId> ids, std::size_t d_vocab,
                               std::span<const TokenId> stop);

  std::size_t n_states() const { return at_end_.size(); }
  std::size_t d_vocab() const { return d_vocab_; }
  // Where a continuation begins; of_text: the prompt has no text (TokenTexts::nothing_in). dead(): no sequence of
  // tokens is ever accepted.
  std::uint32_t start(bool of_text = false) const { return of_text ? text_start_ : start_; }
  // [d_vocab]: the next state for each token. A stop token leads to accepted() or dead().
  std::span<const std::uint32_t> next(std::uint32_t state) const {
    return std::span(next_).subspan(state * d_vocab_, d_vocab_);
  }
  static constexpr std::uint32_t accepted() { return 0; }  // leads to itself, as does
  static constexpr std::uint32_t dead() { return 1; }      // where nothing is accepted any more
  // Whether a text that ends in this state is accepted, be it by a stop token or by the limit of its tokens.
  bool accepts_at_end(std::uint32_t state) const { return at_end_[state] != 0; }
  // Nothing of the pattern is matched that the next token would need: the starts, and states that most tokens lead
  // to again and again. Never accepted() or dead().
  bool is_root(std::uint32_t state) const { return root_[state] != 0; }

 private:
  TokenAutomaton() = default;
  friend class TokenAutomatonBuilder;
  std::size_t d_vocab_ = 0;
  std::vector<std::uint32_t> next_;          // [n_states, d_vocab]
  std::vector<std::uint8_t> at_end_, root_;  // [n_states]
  std::uint32_t start_ = 0, text_start_ = 0;
};

}  // namespace deeptail
