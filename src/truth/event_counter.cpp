#include "truth/event_counter.h"

#include <algorithm>

#include "core/memory.h"
#include "core/random.h"
#include "events/scored_event.h"
#include "events/text_events.h"

namespace deeptail {

namespace {

constexpr std::size_t kTextsAtOnce = 256;

}  // namespace

struct EventCounter::Pattern {
  TokenAutomaton automaton;
  std::size_t within, event;
};
struct EventCounter::Finished {
  std::shared_ptr<const TextScore> score;
  std::size_t within, event;
};

EventCounter::EventCounter(const LoadedModel& model, const InputLaw& law, SamplingConfig sampling,
                           const std::vector<EventSpec>& events, std::uint64_t seed, ThreadPool& pool)
    : law_(law), sampling_(std::move(sampling)), seed_(seed), pool_(pool) {
  const ModelConfig& config = model.config();
  sampling_.max_tokens = 1;
  for (const EventSpec& spec : events) sampling_.max_tokens = std::max(sampling_.max_tokens, spec.length());
  sampling_.validate(config.d_vocab);
  width_ = law.facts().max_length + sampling_.max_tokens;
  if (width_ > config.n_ctx)
    throw InputError("prompts of {} tokens and {} more: expected at most {}, the model's n_ctx",
                     law.facts().max_length, sampling_.max_tokens, config.n_ctx);
  if (model.tokenizer)
    texts_ = std::make_shared<const TokenTexts>(token_texts(model.tokenizer->tokenizer, config.d_vocab));
  for (std::size_t i = 0; i < events.size(); ++i)
    if (events[i].has_threshold())
      make_finished(model, events[i], i);
    else
      make_pattern(model, events[i], i);
  const std::vector<TokenId> prefix = constant_prefix(law, pool);
  const double slot = static_cast<double>(Decoder::bytes_per_slot(config, width_, prefix.size()));
  at_once_ = std::clamp<std::size_t>(static_cast<std::size_t>(0.25 * memory_limit() / slot), 1, kTextsAtOnce);
  check_memory("the keys of a text", slot * static_cast<double>(at_once_), "ask for fewer tokens");
  decoder_ = std::make_unique<Decoder>(model.transformer, at_once_, width_, pool, prefix);
  for (std::size_t w = 0; w < pool.size(); ++w) laws_.emplace_back(sampling_, config.d_vocab);
  tokens_.resize(at_once_ * width_);
  decoded_.resize(at_once_);
  prompt_.resize(at_once_);
  states_.resize(at_once_ * patterns_.size());
}
EventCounter::~EventCounter() = default;

void EventCounter::make_pattern(const LoadedModel& model, const EventSpec& spec, std::size_t event) {
  patterns_.push_back(
      {make_event_automaton(spec, sampling_.stop, texts_.get(), model).automaton, spec.length(), event});
}

void EventCounter::make_finished(const LoadedModel& model, const EventSpec& spec, std::size_t event) {
  finished_.push_back(
      {.score = make_text_score(spec, {}, model, texts_), .within = spec.within, .event = event});
}

// Whether all events but those of finished texts are settled.
bool EventCounter::step(std::size_t text, std::size_t t, TokenId token) {
  std::uint32_t* states = states_.data() + text * patterns_.size();
  bool settled = finished_.empty();
  for (std::size_t k = 0; k < patterns_.size(); ++k) {
    const auto& [automaton, within, event] = patterns_[k];
    std::uint32_t& state = states[k];
    if (state == TokenAutomaton::accepted() || state == TokenAutomaton::dead()) continue;
    state = automaton.next(state)[static_cast<std::size_t>(token)];
    if (t + 1 == within && state != TokenAutomaton::accepted())
      state = automaton.accepts_at_end(state) ? TokenAutomaton::accepted() : TokenAutomaton::dead();
    settled = settled && (state == TokenAutomaton::accepted() || state == TokenAutomaton::dead());
  }
  return settled;
}

void EventCounter::run(std::uint64_t first, std::span<const std::span<const TokenId>> prompts) {
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    TokenId* row = tokens_.data() + i * width_;
    std::copy(prompts[i].begin(), prompts[i].end(), row);
    prompt_[i] = prompts[i].size();
    decoded_[i] = {.slot = i, .tokens = row, .length = prompts[i].size()};
    const bool of_text = texts_ && texts_->nothing_in(prompts[i]);
    for (std::size_t k = 0; k < patterns_.size(); ++k)
      states_[i * patterns_.size() + k] = patterns_[k].automaton.start(of_text);
  }
  const auto choose = [&](std::size_t i, std::size_t length, std::span<const float> logits,
                          std::size_t worker) -> Decoder::Choice {
    NextTokenLaw& next = laws_[worker];
    next.set(logits);
    const std::size_t t = length - prompt_[i];
    const auto slot = static_cast<std::uint32_t>(law_.facts().n_parts + t);
    const TokenId token = next.draw(uniform64({seed_, Stream::kInputs}, first + i, slot));
    const bool settled = step(i, t, token);
    return {token, settled || sampling_.stops(token) || t + 1 == sampling_.max_tokens};
  };
  decoder_->run(std::span(decoded_).first(prompts.size()), choose);
}

void EventCounter::add(std::uint64_t first, std::size_t n, std::span<std::uint64_t> counts) {
  const Inputs inputs = sample_inputs(law_, seed_, first, n, pool_);
  for (std::size_t at = 0; at < n; at += at_once_) {
    const std::size_t some = std::min(at_once_, n - at);
    std::vector<std::span<const TokenId>> prompts;
    for (std::size_t i = 0; i < some; ++i) prompts.push_back(inputs.sequence(at + i));
    run(first + at, prompts);
    for (std::size_t i = 0; i < some; ++i)
      for (std::size_t k = 0; k < patterns_.size(); ++k)
        counts[patterns_[k].event] += states_[i * patterns_.size() + k] == TokenAutomaton::accepted();
    for (const Finished& f : finished_) {
      std::vector<SampledText> texts;
      for (std::size_t i = 0; i < some; ++i) {
        std::span<const TokenId> said(tokens_.data() + i * width_ + prompt_[i],
                                      decoded_[i].length - prompt_[i]);
        said = said.first(std::min(said.size(), f.within));
        if (!said.empty() && sampling_.stops(said.back())) said = said.first(said.size() - 1);
        texts.push_back({prompts[i], said});
      }
      std::vector<double> scores(some);
      f.score->scores(texts, scores, pool_);
      counts[f.event] += static_cast<std::uint64_t>(
          std::count_if(scores.begin(), scores.end(), [](double s) { return s >= 0.0; }));
    }
  }
}

}  // namespace deeptail
