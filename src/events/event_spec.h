// Events as files say them: {"contains": " wizard", "within": 40}.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/json_node.h"
#include "deeptail/event_spec.h"

namespace deeptail {

inline constexpr std::size_t kMostTokens = std::size_t{1} << 20;  // of a continuation

// Throws InputError for what no event is.
EventSpec parse_event_spec(const JsonNode& node);
// A JSON list of them, or one a line. Throws InputError for none at all and for the same one twice.
std::vector<EventSpec> parse_event_specs(std::string_view text, std::string_view where);
void check_distinct_events(const std::vector<EventSpec>& events, std::string_view where);
OrderedJson json_of(const EventSpec& spec);
std::string text_of(const EventSpec& spec);  // for people

}  // namespace deeptail
