// Events on what a model says after an input: a pattern in a continuation that is sampled as deployed, or greedy.
//
//   const auto event = make_text_event({.kind = EventKind::kContains, .value = " wizard", .within = 40}, {}, model);
//
// The score is a guess of how nearly the pattern was finished: the largest chance, over the text's steps, to finish it
// from there without starting anew, the larger the nearer the step's number is to drawing what is wanted. It comes from
// the logits that sampling needs anyway, and from a chance for every state of the pattern's automaton. Those are learnt beforehand (learnt()); whatever they are, estimates stay unbiased.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "deeptail/event.h"
#include "deeptail/event_spec.h"
#include "deeptail/load.h"
#include "deeptail/patterns.h"
#include "deeptail/sampling.h"

namespace [[gnu::visibility("default")]] deeptail {

// What is looked for in a continuation.
struct TextPattern {
  std::string kind;   // "contains": of EventKind
  std::string value;  // as the user said it
  TokenAutomaton automaton;
  std::optional<ByteDfa> dfa = {};  // on the text: says where a match is; none: the pattern is one of tokens
  std::optional<TokenTexts> texts = {};  // none: tokens have no texts
  std::string text = {};                 // for people: contains " wizard"
};

struct LearnConfig {
  std::size_t texts = 256;  // in each round
  std::size_t rounds = 3;
  std::size_t branches = 8;  // tries to finish the pattern, in each text
  std::uint64_t seed = 1;
};

class PatternTables;  // src/events/pattern_tables.h

class ContinuationEvent : public Event {
 public:
  ContinuationEvent(std::shared_ptr<const TextPattern> pattern, SamplingConfig sampling);

  std::string text() const override;
  std::string json() const override;
  std::size_t n_parts() const override { return sampling_.greedy ? 0 : sampling_.max_tokens; }
  std::size_t answer_length() const override { return sampling_.max_tokens; }
  bool has_crossings() const override { return !sampling_.greedy; }
  std::unique_ptr<Scorer> scorer(const Transformer& model, const InputLaw& law, const ScorerOptions& options,
                                 ThreadPool& pool) const override;
  ScorerBytes bytes(const ModelConfig& config, const InputLaw& law) const override;
  double score_flops(const ModelConfig& config, const InputLaw& law) const override;
  double change_flops(const ModelConfig& config, const InputLaw& law, std::size_t part) const override;
  AnswerText answer_text(std::span<const TokenId> input, std::span<const TokenId> answer) const override;
  const ContinuationEvent* continuation() const override { return this; }

  const TextPattern& pattern() const { return *pattern_; }
  const SamplingConfig& sampling() const { return sampling_; }
  const PatternTables& tables() const { return *tables_; }
  // The chance to finish the pattern from each state of its automaton: [n_states], above 0, 1 where it is accepted.
  std::span<const double> chances() const;
  ContinuationEvent with_chances(std::vector<double> chances) const;
  // The same event with chances from texts of the law that try to finish the pattern.
  ContinuationEvent learnt(const Transformer& model, const InputLaw& law, const LearnConfig& config,
                           ThreadPool& pool, Work* work = nullptr) const;

 protected:
  std::shared_ptr<const TextPattern> pattern_;
  SamplingConfig sampling_;
  std::shared_ptr<const PatternTables> tables_;
};

// The same event by what texts pay: an unbiased guess of the pattern's probability from every text, which mostly do not
// have it. branches: tries to finish the pattern in each text. The score is the log of what a text may pay.
class ContinuationPayoff final : public ContinuationEvent {
 public:
  ContinuationPayoff(const ContinuationEvent& event, std::size_t branches);
  bool pays() const override { return true; }
  bool has_crossings() const override { return false; }
  std::unique_ptr<Scorer> scorer(const Transformer& model, const InputLaw& law, const ScorerOptions& options,
                                 ThreadPool& pool) const override;

 private:
  std::size_t branches_;
};

// Of a spec that is not of a judge or a probe. sampling: as deployed, with the tokens that end a text; its max_tokens is the spec's.
std::unique_ptr<ContinuationEvent> make_text_event(const EventSpec& spec, SamplingConfig sampling,
                                                   const LoadedModel& model);
// The tokens that end a text. stop: a token, "eos" or "none"; "": eos where the model's files name one.
std::vector<TokenId> stop_tokens(std::string_view stop, const LoadedModel& model);

struct SaidText {
  std::vector<TokenId> prompt_tokens = {}, tokens = {};  // a stop token left out
  bool stopped = false;                                  // by one
  std::string prompt = {}, continuation = {};            // where the model has a tokenizer
};
// What a model says after prompts of a law. All must outlive it.
class TextGenerator {
 public:
  // within: new tokens of a text at most; none: 64, or what the model has room for.
  TextGenerator(const LoadedModel& model, const InputLaw& law, const SamplingConfig& sampling,
                std::optional<std::size_t> within);
  // Texts [first, first + n) of the seed: those that plain sampling has there, too.
  std::vector<SaidText> texts(std::uint64_t seed, std::uint64_t first, std::size_t n, ThreadPool& pool) const;
  std::size_t at_once() const;  // texts that are well made together
  bool has_texts() const { return tokenizer_ != nullptr; }

 private:
  SaidText said(std::span<const TokenId> prompt, std::span<const TokenId> tokens) const;
  const LoadedModel& model_;
  const InputLaw& law_;
  SamplingConfig sampling_;
  const Tokenizer* tokenizer_ = nullptr;
  std::optional<TokenTexts> texts_;
};

}  // namespace deeptail
