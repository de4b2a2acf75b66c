// Parts of files with counts of events.
#pragma once

#include <string>
#include <string_view>

#include "core/json.h"
#include "deeptail/truth.h"
#include "events/event_spec.h"

namespace deeptail {

OrderedJson json_of(const SamplingConfig& sampling);
bool same_sampling(const SamplingConfig& a, const SamplingConfig& b);
// An event as parse_events gives it.
EventSpec event_spec_of(const std::string& event);
// Throws InputError unless both count the same events of the same subject.
void check_same_events(const EventCounts& a, std::string_view where_a, const EventCounts& b,
                       std::string_view where_b);

}  // namespace deeptail
