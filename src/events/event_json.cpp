#include "events/event_json.h"

#include <algorithm>
#include <array>
#include <limits>

#include "core/screen_text.h"
#include "deeptail/continuation.h"

namespace deeptail {

namespace {

std::string ids_of_text(std::string_view text, const Tokenizer& tokenizer) {
  constexpr std::size_t kMostIds = 16;
  try {
    const std::vector<TokenId> ids = tokenizer.encode(text);
    return fmt::format("it is {} tokens: ids {}{}", ids.size(),
                       fmt::join(std::span(ids).first(std::min(kMostIds, ids.size())), ", "),
                       ids.size() > kMostIds ? ", ..." : "");
  } catch (const InputError& e) {
    return e.what();
  }
}

TokenId token_of(const JsonNode& json, const std::optional<NamedTokenizer>& tokenizer) {
  constexpr auto kLargest = static_cast<std::uint64_t>(std::numeric_limits<TokenId>::max());
  if (json.value().is_number()) return static_cast<TokenId>(json.count(0, kLargest));
  if (!json.value().is_string()) json.fail_expected("a token's id or its text");
  const std::string& text = json.text();
  if (!tokenizer)
    throw InputError("{}: {} is no id, and the model has no tokenizer, so only ids can be given",
                     json.where(), quoted_text(text));
  if (const auto id = tokenizer->tokenizer.id_of(text)) return *id;
  throw InputError("{}: {} is not one token of this model: {}", json.where(), quoted_text(text),
                   text.empty() ? "it is empty" : ids_of_text(text, tokenizer->tokenizer));
}

std::vector<TokenId> tokens_of(const JsonNode& json, const std::optional<NamedTokenizer>& tokenizer) {
  if (!json.value().is_array()) return {token_of(json, tokenizer)};
  std::vector<TokenId> ids;
  for (const JsonNode& one : json.elements()) ids.push_back(token_of(one, tokenizer));
  return ids;
}

constexpr std::size_t kLongestAnswer = std::size_t{1} << 20;

SamplingConfig sampling_of(const JsonNode& json) {
  SamplingConfig sampling;
  if (json.has("greedy")) sampling.greedy = json.at("greedy").boolean();
  if (json.has("temperature")) sampling.temperature = json.at("temperature").number();
  if (json.has("top_k")) sampling.top_k = json.at("top_k").count(0, kLongestAnswer);
  if (json.has("top_p")) sampling.top_p = json.at("top_p").number();
  return sampling;
}

std::unique_ptr<Event> text_event(const JsonNode& json, EventSpec spec, const LoadedModel& model) {
  SamplingConfig sampling = sampling_of(json);
  sampling.stop = stop_tokens(json.has("stop") ? json.at("stop").text() : "", model);
  if (json.has("within"))
    spec.within = json.at("within").count(1, kLongestAnswer);
  else if (spec.length() == 0)
    throw InputError("{}: expected \"within\", the number of tokens of the continuation", json.where());
  return make_text_event(spec, std::move(sampling), model);
}

// The one key that says what the event is.
std::string event_key_of(const JsonNode& json) {
  constexpr std::array kKinds = {"target", "starts_with", "contains", "matches", "tokens_any"};
  constexpr std::array kHow = {"within", "temperature", "top_k", "top_p", "greedy", "stop", "sampled"};
  const auto among = [](const auto& names, const std::string& key) {
    return std::find(names.begin(), names.end(), key) != names.end();
  };
  std::vector<std::string> found;
  for (const auto& [key, value] : json.value().items()) {
    if (among(kKinds, key))
      found.push_back(key);
    else if (!among(kHow, key))
      throw InputError("{}: unknown key \"{}\"; expected {} or {}", json.where(), printable(key),
                       fmt::join(kKinds, ", "), fmt::join(kHow, ", "));
  }
  if (found.size() != 1)
    throw InputError("{}: expected one of {}, found {}", json.where(), fmt::join(kKinds, ", "),
                     found.empty() ? "none" : fmt::format("{}", fmt::join(found, " and ")));
  return found.front();
}

}  // namespace

std::unique_ptr<Event> event_of_json(const JsonNode& json, const LoadedModel* model, const Head& head) {
  static const std::optional<NamedTokenizer> none;
  const std::optional<NamedTokenizer>& tokenizer = model == nullptr ? none : model->tokenizer;
  json.expect_object();
  const std::string kind = event_key_of(json);
  const JsonNode what = json.at(kind.c_str());
  const bool sampled = json.has("sampled") && json.at("sampled").boolean();
  if (kind == "target" && !sampled) {
    if (json.value().size() > (json.has("sampled") ? 2 : 1))
      throw InputError("{}: the most likely next token is not drawn; expected \"sampled\": true",
                       json.where());
    return std::make_unique<NextToken>(Target(tokens_of(what, tokenizer), head));
  }
  if (model == nullptr)
    throw InputError("{}: what is sampled needs a model: activations are not enough", json.where());
  EventSpec spec{.kind = *value_named<EventKind>(kind)};
  if (spec.has_ids())
    spec.ids = tokens_of(what, tokenizer);
  else
    spec.value = what.text();
  return text_event(json, std::move(spec), *model);
}

}  // namespace deeptail
