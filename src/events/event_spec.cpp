#include "events/event_spec.h"

#include <algorithm>
#include <set>

#include "core/nearest.h"

namespace deeptail {

namespace {

constexpr std::size_t kMostEventIds = 1 << 16, kMostEvents = 100000;
constexpr std::size_t kLargestVocabulary = std::size_t{1} << 24;

// The one key that says which kind of event it is. Throws for others that no event has.
EventKind kind_of(const JsonNode& node) {
  node.expect_object();
  const auto& names = EnumNames<EventKind>::kAll;
  int found = -1;
  for (const auto& [key, value] : node.value().items()) {
    if (key == "within" || key == "threshold") continue;
    const auto* name = std::find(std::begin(names), std::end(names), key);
    if (name == std::end(names) || found >= 0)
      throw InputError("{}: key \"{}\": expected one of {}, and \"within\" or \"threshold\" with it",
                       node.where(), printable(key), fmt::join(names, ", "));
    found = static_cast<int>(name - std::begin(names));
  }
  if (found < 0) node.fail_expected(fmt::format("an object with one of {}", fmt::join(names, ", ")));
  return static_cast<EventKind>(found);
}

std::vector<TokenId> ids_of(const JsonNode& node) {
  std::vector<TokenId> ids = node.value().is_array()
                                 ? node.token_ids(kLargestVocabulary)
                                 : std::vector<TokenId>{node.token_id(kLargestVocabulary)};
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  if (ids.empty() || ids.size() > kMostEventIds)
    node.fail_expected(fmt::format("1 to {} token ids", kMostEventIds));
  return ids;
}

void take_within(const JsonNode& node, EventSpec& spec) {
  if (spec.kind == EventKind::kTarget) {
    spec.within = 1;
    return;
  }
  const bool may_lack = spec.kind == EventKind::kStartsWith || spec.kind == EventKind::kProbe;
  if (node.has("within") || !may_lack) spec.within = node.at("within").count(1, kMostTokens);
}

}  // namespace

EventSpec parse_event_spec(const JsonNode& node) {
  EventSpec spec{.kind = kind_of(node)};
  const JsonNode value = node.at(std::string(name_of(spec.kind)).c_str());
  if (spec.has_ids()) {
    spec.ids = ids_of(value);
  } else {
    spec.value = value.text();
    if (spec.value.empty() || spec.value.size() > kMostTokens) value.fail_expected("text that is not empty");
  }
  take_within(node, spec);
  if (spec.has_threshold())
    spec.threshold = node.at("threshold").number();
  else if (node.has("threshold"))
    node.at("threshold").fail_expected("no threshold: only a judge and a probe have one");
  return spec;
}

void check_distinct_events(const std::vector<EventSpec>& events, std::string_view where) {
  std::set<std::string> seen;
  for (const EventSpec& spec : events)
    if (!seen.insert(json_text(json_of(spec))).second)
      throw InputError("{}: {} is there twice", where, printable(text_of(spec), 200));
}

std::vector<EventSpec> parse_event_specs(std::string_view text, std::string_view where) {
  std::vector<EventSpec> out;
  const std::size_t start = text.find_first_not_of(" \t\r\n");
  if (start == std::string_view::npos) throw InputError("{}: is empty: expected events", where);
  if (text[start] == '[') {
    const Json document = parse_json(text, where);
    for (const JsonNode& node : JsonNode(document, where).elements()) out.push_back(parse_event_spec(node));
  } else {
    std::size_t number = 1;
    for (std::size_t at = 0; at < text.size(); ++number) {
      const std::size_t stop = std::min(text.find('\n', at), text.size());
      const std::string_view line = text.substr(at, stop - at);
      at = stop + 1;
      if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
      const std::string place = fmt::format("{}: line {}", where, number);
      const Json document = parse_json(line, place);
      out.push_back(parse_event_spec(JsonNode(document, place)));
    }
  }
  if (out.empty() || out.size() > kMostEvents)
    throw InputError("{}: holds {} events: expected 1 to {}", where, out.size(), kMostEvents);
  check_distinct_events(out, where);
  return out;
}

OrderedJson json_of(const EventSpec& spec) {
  OrderedJson out = OrderedJson::object();
  const std::string key(name_of(spec.kind));
  if (spec.has_ids())
    out[key] = spec.ids;
  else
    out[key] = spec.value;
  if (spec.within > 0 && spec.kind != EventKind::kTarget) out["within"] = spec.within;
  if (spec.has_threshold()) out["threshold"] = spec.threshold;
  return out;
}

std::string text_of(const EventSpec& spec) {
  const std::string within = spec.within == 0 ? "" : fmt::format(" within {}", spec.within);
  const auto quoted = [&] { return fmt::format("\"{}\"", printable(spec.value)); };
  switch (spec.kind) {
    case EventKind::kTarget:
      return fmt::format("says {}", fmt::join(spec.ids, " or "));
    case EventKind::kStartsWith:
      return fmt::format("starts with {}{}", quoted(), within);
    case EventKind::kContains:
      return fmt::format("contains {}{}", quoted(), within);
    case EventKind::kMatches:
      return fmt::format("matches {}{}", quoted(), within);
    case EventKind::kTokensAny:
      return fmt::format("has token {}{}", fmt::join(spec.ids, " or "), within);
    case EventKind::kJudge:
      return fmt::format("is judged at least {:g} by {}{}", spec.threshold, quoted(), within);
    case EventKind::kProbe:
      return fmt::format("is at least {:g} along {}{}", spec.threshold, quoted(), within);
  }
  return "";
}

}  // namespace deeptail
