#include "events/event_json.h"

#include <limits>

#include "core/screen_text.h"

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

}  // namespace

std::unique_ptr<Event> event_of_json(const JsonNode& json, const Head& head,
                                     const std::optional<NamedTokenizer>& tokenizer) {
  json.expect_object();
  const JsonNode target = json.at("target");
  for (const auto& [key, value] : json.value().items())
    if (key != "target")
      throw InputError("{}: unknown key \"{}\"; expected target", json.where(), printable(key));
  std::vector<TokenId> ids;
  if (target.value().is_array())
    for (const JsonNode& one : target.elements()) ids.push_back(token_of(one, tokenizer));
  else
    ids.push_back(token_of(target, tokenizer));
  return std::make_unique<NextToken>(Target(std::move(ids), head));
}

}  // namespace deeptail
