// Events as files say them: {"contains": " wizard", "within": 40}.
#pragma once

#include <compare>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "core/json_node.h"
#include "deeptail/core.h"
#include "deeptail/enum_names.h"

namespace deeptail {

enum class EventKind { kTarget, kStartsWith, kContains, kMatches, kTokensAny, kJudge, kProbe };
template <>
struct EnumNames<EventKind> {
  static constexpr std::string_view kAll[] = {"target",     "starts_with", "contains", "matches",
                                              "tokens_any", "judge",       "probe"};
};

struct EventSpec {
  EventKind kind = EventKind::kContains;
  std::string value = {};         // text, pattern, command or file
  std::vector<TokenId> ids = {};  // of kTarget and kTokensAny
  std::size_t within = 0;         // tokens of the continuation
  double threshold = 0.0;         // of kJudge and kProbe
  friend bool operator==(const EventSpec&, const EventSpec&) = default;

  bool has_threshold() const { return kind == EventKind::kJudge || kind == EventKind::kProbe; }
};
inline constexpr std::size_t kMostTokens = std::size_t{1} << 20;  // of a continuation

// Throws InputError for what no event is. The length of kStartsWith is that of its text in bytes, and of kTarget 1,
// whatever is said: no token is needed after that.
EventSpec parse_event_spec(const JsonNode& node);
// A JSON list of them, or one a line. Throws InputError for none at all and for the same one twice.
std::vector<EventSpec> parse_event_specs(std::string_view text, std::string_view where);
void check_distinct_events(const std::vector<EventSpec>& events, std::string_view where);
OrderedJson json_of(const EventSpec& spec);
std::string text_of(const EventSpec& spec);  // for people

}  // namespace deeptail
