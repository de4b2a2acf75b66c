// An event on a continuation, from what a user says.
#include <algorithm>
#include <charconv>
#include <filesystem>

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

std::vector<TokenId> ids_in(std::string_view text, std::size_t d_vocab) {
  std::vector<TokenId> ids;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    const std::string_view piece = text.substr(at, end - at);
    std::uint32_t id = 0;
    const auto [stop, error] = std::from_chars(piece.data(), piece.data() + piece.size(), id);
    if (piece.empty() || error != std::errc() || stop != piece.data() + piece.size() || id >= d_vocab)
      throw InputError("tokens \"{}\": expected ids from 0 to {}, separated by commas, found \"{}\"",
                       printable(text), d_vocab - 1, printable(piece));
    ids.push_back(static_cast<TokenId>(id));
    at = end + 1;
  }
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  return ids;
}

ByteDfa dfa_of(const TextEventSpec& spec) {
  if (spec.value.empty()) throw InputError("an empty text: expected at least one byte to look for");
  if (spec.kind == TextEventKind::kStartsWith) return starts_with(spec.value);
  if (spec.kind == TextEventKind::kContains) return contains(spec.value);
  return matches(spec.value, "regular expression");
}

std::string_view verb_of(TextEventKind kind) {
  constexpr std::string_view kVerbs[] = {"starts with", "contains", "matches", "has a token of"};
  return kVerbs[static_cast<std::size_t>(kind)];
}

TextPattern pattern_of(const TextEventSpec& spec, const std::vector<TokenId>& stop, const LoadedModel& model) {
  const std::size_t d_vocab = model.config().d_vocab;
  const std::string kind(name_of(spec.kind));
  if (spec.kind == TextEventKind::kTokensAny) {
    TextPattern pattern{.kind = kind,
                        .value = spec.value,
                        .automaton = TokenAutomaton::any_of(ids_in(spec.value, d_vocab), d_vocab, stop)};
    if (model.tokenizer) pattern.texts = token_texts(model.tokenizer->tokenizer, d_vocab);
    return pattern;
  }
  const ByteDfa dfa = dfa_of(spec);
  TokenTexts texts = token_texts(tokenizer_for(model, quoted_text(spec.value)), d_vocab);
  TokenAutomaton automaton(dfa, texts, stop);
  return {.kind = kind,
          .value = spec.value,
          .automaton = std::move(automaton),
          .dfa = dfa,
          .texts = std::move(texts)};
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

std::unique_ptr<ContinuationEvent> make_text_event(const TextEventSpec& spec, const LoadedModel& model) {
  SamplingConfig sampling = spec.sampling;
  sampling.max_tokens = spec.within;
  if (spec.within == 0 && spec.kind == TextEventKind::kStartsWith)
    sampling.max_tokens = std::max<std::size_t>(1, spec.value.size());
  if (sampling.max_tokens == 0)
    throw InputError("expected the number of tokens within which the model {} it", verb_of(spec.kind));
  sampling.stop = stop_tokens(spec.stop, model);
  sampling.validate(model.config().d_vocab);
  TextPattern pattern = pattern_of(spec, sampling.stop, model);
  const bool tokens = spec.kind == TextEventKind::kTokensAny;
  pattern.text = fmt::format("{}{} {}", sampling.greedy ? "greedily " : "", verb_of(spec.kind),
                             tokens ? spec.value : quoted_text(spec.value));
  if (sampling.max_tokens > 1 || !tokens)
    pattern.text += fmt::format(" within {} tokens", sampling.max_tokens);
  return std::make_unique<ContinuationEvent>(std::make_shared<const TextPattern>(std::move(pattern)), sampling);
}

}  // namespace deeptail
