// Any bytes as counts of events, or as a list of events: either refused with an InputError, or what survives writing.
#include <cstdlib>

#include "deeptail/truth.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const deeptail::EventCounts counts = deeptail::parse_event_counts(text, "fuzz");
    const std::string written = deeptail::to_json(counts);
    if (deeptail::to_json(deeptail::parse_event_counts(written, "fuzz")) != written) std::abort();
  } catch (const deeptail::InputError&) {
  }
  try {
    for (const std::string& event : deeptail::parse_events(text, "fuzz"))
      if (deeptail::parse_events(event, "fuzz") != std::vector<std::string>{event}) std::abort();
  } catch (const deeptail::InputError&) {
  }
  return 0;
}
