// Events: what may happen after an input, as a score: at or above 0 iff it happened, larger is nearer.
//
// An event gives out scorers, one for each population, which may keep what they computed of the inputs that
// it holds. Scores are doubles from end to end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "deeptail/core.h"
#include "deeptail/law.h"
#include "deeptail/model.h"
#include "deeptail/target.h"

namespace [[gnu::visibility("default")]] deeptail {

// Work done, in its own units; flops are those of the algorithm (full passes over all positions, re-scoring
// from the first changed position on, logits that were looked at, a quarter of one for each that 8 bits
// settle).
struct Work {
  std::uint64_t forwards = 0, rescored = 0, logits = 0;
  double flops = 0.0;
  double device_seconds = 0.0;  // of a device that others share
  Work& operator+=(const Work& other);
};

// What a scorer learnt that makes the decisions of others of its event quicker, and never changes one.
struct ScoreHints {
  std::vector<TokenId> usual_winners = {};  // tokens that most often beat the target, most frequent first
};

struct EventInputs {
  TokenBatch inputs;                            // [n]
  std::span<const std::uint64_t> numbers = {};  // [n, Event::n_parts()]
};

// Changed copies of inputs that a scorer holds.
struct Proposals {
  EventInputs changed;                           // [n]
  std::span<const std::uint32_t> held;           // [n]: which one each would replace; each at most once
  std::span<const std::uint32_t> first_changed;  // [n]: position; the length where only numbers changed
};

// Where the answer of a held input first reaches a level, whatever its later numbers are: number `number` of it, and all
// that draw it below `share` of 1 do.
struct Crossing {
  std::size_t number = 0;
  double share = 0.0;  // 0: the level is not reached so
};

// Of one population.
class Scorer {
 public:
  virtual ~Scorer() = default;
  // out: [n].
  virtual Work scores(const EventInputs& inputs, std::span<double> out) = 0;
  // From all that was scored since the last hold().
  virtual ScoreHints hints() const { return {}; }
  // From now on these are the held inputs; at most ScorerOptions::max_held.
  virtual Work hold(const EventInputs& inputs, const ScoreHints& hints) = 0;
  // Of events that keep what is held (Event::keeps_held): these copies of held inputs, parents [n] in ascending order, are
  // the held ones; new hints for them; their scores, of some from `first` on.
  virtual void copy_held(std::span<const std::uint32_t> /*parents*/) {}
  virtual void take_hints(const ScoreHints& /*hints*/) {}
  virtual Work held_scores(std::size_t /*first*/, std::span<double> /*out*/) { return {}; }
  // The scores of proposals, none of which is taken: what is held stays. out: [n].
  virtual Work rescore(const Proposals& proposals, std::span<double> out) {
    return scores(proposals.changed, out);
  }
  // accept[i] = (score of proposal i >= level). Accepted ones are held instead of what they are copies of.
  virtual Work decide(double level, const Proposals& proposals, std::span<std::uint8_t> accept) = 0;
  // Of events that have crossings.
  virtual Crossing crossing(std::size_t /*held*/, double /*level*/) const { return {}; }
  // Scores cannot be had any more, so what was given since is none: the user wants to stop.
  virtual bool gave_up() const { return false; }

  // Of events with answers, for the inputs of the last call of scores, rescore or decide: [n], until the next one.
  virtual TokenBatch answers() const { return {}; }
  // Of events that pay, for those of the last call of scores: logs of what they pay, [n], and the answers that they
  // are paid for, of length 0 where there is none.
  virtual std::span<const double> log_payoffs() const { return {}; }
  virtual TokenBatch paid_answers() const { return {}; }
};

struct ScorerOptions {
  std::size_t max_held = 0;                // inputs of a hold(); 0: nothing will be held
  const FirstLayerTable* table = nullptr;  // what scorers of one model and law may share; null: none
  const Screen* screen = nullptr;          // likewise
};

// An answer for people.
struct AnswerText {
  std::string prompt = {}, continuation = {};
  std::size_t match_begin = 0, match_end = 0;  // bytes of the continuation; both 0: nowhere
};

// Memory that a scorer takes for each input.
struct ScorerBytes {
  double scored = 0.0, held = 0.0;
};

class ContinuationEvent;  // continuation.h

class Event {
 public:
  virtual ~Event() = default;
  virtual std::string text() const = 0;  // for people: says 310
  // Numbers that a sampled answer is made from, besides the input; moves draw them anew as they do a law's
  // parts.
  virtual std::size_t n_parts() const { return 0; }
  // All that is given must outlive the scorer, and so must the event.
  virtual std::unique_ptr<Scorer> scorer(const Transformer& model, const InputLaw& law,
                                         const ScorerOptions& options, ThreadPool& pool) const = 0;
  virtual ScorerBytes bytes(const ModelConfig& config, const InputLaw& law) const = 0;

  // Floating-point operations of one score, and of one that is computed anew after a change of a part, of which the
  // law's come first and then the event's own.
  virtual double score_flops(const ModelConfig& config, const InputLaw& law) const;
  virtual double change_flops(const ModelConfig& config, const InputLaw& law, std::size_t part) const;
  // Can what a scorer holds be copied for nothing, and scored again for held_score_flops?
  virtual bool keeps_held() const { return false; }
  virtual double held_score_flops(const ModelConfig& config, const InputLaw& law) const {
    return score_flops(config, law);
  }

  // Tokens of the longest answer that the event is about; 0: it is about the input alone.
  virtual std::size_t answer_length() const { return 0; }
  // Is a score the largest of an answer's steps, each of which hangs on the numbers up to it alone, and on its own the more
  // the smaller that is? Then whatever comes after a crossing can be drawn anew.
  virtual bool has_crossings() const { return false; }
  // The event is not that a score is at least 0: its probability is the mean of what inputs pay, and scores only say
  // which pay much.
  virtual bool pays() const { return false; }
  // Texts of an input and its answer, and where in it the event is; without a tokenizer there are none.
  virtual AnswerText answer_text(std::span<const TokenId> input, std::span<const TokenId> answer) const;
  virtual std::string json() const { return ""; }  // as an object; "": text() says it all
  // False: scores come from elsewhere, and whoever asks waits for them.
  virtual bool runs_model() const { return true; }

  // Where the event is that the most likely next token is one of these: for methods that look at activations
  // or gradients. Else null.
  virtual const Target* next_token() const { return nullptr; }
  // Where it is a pattern in a continuation: for methods that look at its states. Else null.
  virtual const ContinuationEvent* continuation() const { return nullptr; }
};

// The numbers of an event's sampled answers to samples [first, first + n) of a law: [n, Event::n_parts()].
// They follow the law's own, so that no two parts share one.
std::vector<std::uint64_t> sample_numbers(const Event& event, const InputLaw& law, std::uint64_t seed,
                                          std::uint64_t first, std::size_t n);

// The most likely next token is in the target; at a tie the smaller id is said. The score is the margin,
// which is just below 0 where a tie is lost.
class NextToken final : public Event {
 public:
  explicit NextToken(Target target) : target_(std::move(target)) {}
  std::string text() const override;
  std::unique_ptr<Scorer> scorer(const Transformer& model, const InputLaw& law, const ScorerOptions& options,
                                 ThreadPool& pool) const override;
  ScorerBytes bytes(const ModelConfig& config, const InputLaw& law) const override;
  double change_flops(const ModelConfig& config, const InputLaw& law, std::size_t part) const override;
  bool keeps_held() const override { return true; }
  double held_score_flops(const ModelConfig& config, const InputLaw& law) const override;
  const Target* next_token() const override { return &target_; }

 private:
  Target target_;
};

// A score of your own, of whole batches.
class CallbackEvent final : public Event {
 public:
  // out: [n]. Called by several threads at the same time; must give an input the same score whenever it is
  // asked. One score counts as the work of one forward pass.
  using Score = std::function<void(const EventInputs& inputs, std::span<double> out)>;
  // n_parts: numbers that the score takes besides the input, for answers that are drawn.
  CallbackEvent(std::string text, Score score, std::size_t n_parts = 0)
      : text_(std::move(text)), score_(std::move(score)), n_parts_(n_parts) {}
  std::string text() const override { return text_; }
  std::size_t n_parts() const override { return n_parts_; }
  std::unique_ptr<Scorer> scorer(const Transformer& model, const InputLaw& law, const ScorerOptions& options,
                                 ThreadPool& pool) const override;
  ScorerBytes bytes(const ModelConfig&, const InputLaw&) const override { return {}; }

 private:
  std::string text_;
  Score score_;
  std::size_t n_parts_;
};

}  // namespace deeptail
