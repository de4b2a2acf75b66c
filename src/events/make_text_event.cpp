// An event on a continuation, from what a user says.
#include <algorithm>
#include <filesystem>

#include "core/json.h"
#include "core/screen_text.h"
#include "deeptail/continuation.h"
#include "events/text_events.h"

namespace deeptail {

namespace {

const Tokenizer& tokenizer_for(const LoadedModel& model, std::string_view what) {
  if (!model.tokenizer)
    throw InputError("{}: {} has no tokenizer, so nothing is known of the text that it says", what,
                     printable(model.name));
  return model.tokenizer->tokenizer;
}

ByteDfa dfa_of(const EventSpec& spec) {
  if (spec.value.empty()) throw InputError("an empty text: expected at least one byte to look for");
  if (spec.kind == EventKind::kStartsWith) return starts_with(spec.value);
  if (spec.kind == EventKind::kContains) return contains(spec.value);
  return matches(spec.value, fmt::format("regular expression {}", quoted_text(spec.value)));
}

std::string_view verb_of(EventKind kind) {
  switch (kind) {
    case EventKind::kStartsWith:
      return "starts with";
    case EventKind::kContains:
      return "contains";
    case EventKind::kMatches:
      return "matches";
    default:
      return "has a token of";
  }
}

}  // namespace

std::vector<TokenId> stop_tokens(std::string_view stop, const LoadedModel& model) {
  if (stop == "none") return {};
  if (stop.empty() || stop == "eos") {
    std::vector<TokenId> ids = end_of_text_tokens(model);
    if (ids.empty() && !stop.empty())
      throw InputError("the files of {} name no token that ends a text: give the token itself, or none",
                       printable(model.name));
    return ids;
  }
  const Tokenizer& tokenizer = tokenizer_for(model, "a token that ends a text");
  if (const auto id = tokenizer.id_of(stop)) return {*id};
  const std::vector<TokenId> ids = tokenizer.encode(stop);
  if (ids.size() == 1) return ids;
  throw InputError("{} is not one token of {}: a text ends after one token", quoted_text(stop),
                   printable(model.name));
}

EventAutomaton make_event_automaton(const EventSpec& spec, std::span<const TokenId> stop,
                                    const TokenTexts* texts, const LoadedModel& model) {
  const std::size_t d_vocab = model.config().d_vocab;
  if (spec.has_ids()) {
    for (const TokenId id : spec.ids)
      if (id < 0 || static_cast<std::size_t>(id) >= d_vocab)
        throw InputError("token {}: expected an id from 0 to {}, the model's vocabulary", id, d_vocab - 1);
    return {.dfa = {}, .automaton = TokenAutomaton::any_of(spec.ids, d_vocab, stop)};
  }
  if (texts == nullptr) tokenizer_for(model, quoted_text(spec.value));  // says that there is none
  ByteDfa dfa = dfa_of(spec);
  TokenAutomaton automaton(dfa, *texts, stop);
  return {.dfa = std::move(dfa), .automaton = std::move(automaton)};
}

std::unique_ptr<ContinuationEvent> make_text_event(const EventSpec& spec, SamplingConfig sampling,
                                                   const LoadedModel& model) {
  sampling.max_tokens = spec.length();
  std::optional<TokenTexts> texts;
  if (model.tokenizer) texts = token_texts(model.tokenizer->tokenizer, model.config().d_vocab);
  EventAutomaton made = make_event_automaton(spec, sampling.stop, texts ? &*texts : nullptr, model);
  TextPattern pattern{.kind = std::string(name_of(spec.has_ids() ? EventKind::kTokensAny : spec.kind)),
                      .value = spec.has_ids() ? fmt::format("{}", fmt::join(spec.ids, ",")) : spec.value,
                      .automaton = std::move(made.automaton),
                      .dfa = std::move(made.dfa),
                      .texts = std::move(texts)};
  if (sampling.max_tokens == 0)
    throw InputError("expected the number of tokens within which the model {} it", verb_of(spec.kind));
  sampling.validate(model.config().d_vocab);
  pattern.text = fmt::format("{}{} {}", sampling.greedy ? "greedily " : "", verb_of(spec.kind),
                             spec.has_ids() ? pattern.value : quoted_text(pattern.value));
  if (sampling.max_tokens > 1 || !spec.has_ids())
    pattern.text +=
        fmt::format(" within {} token{}", sampling.max_tokens, sampling.max_tokens == 1 ? "" : "s");
  return std::make_unique<ContinuationEvent>(std::make_shared<const TextPattern>(std::move(pattern)),
                                             sampling);
}

}  // namespace deeptail
