// Counts of events on the screen.
#include <cmath>

#include "cli/output.h"
#include "cli/truth_report.h"
#include "core/json.h"
#include "truth/event_counts.h"

namespace deeptail::cli {

namespace {

std::string sampling_text(const SamplingConfig& s) {
  std::string out = s.greedy ? "greedy" : fmt::format("temperature {:g}", s.temperature);
  if (!s.greedy && s.top_k > 0) out += fmt::format(", top-k {}", s.top_k);
  if (!s.greedy && s.top_p < 1.0) out += fmt::format(", top-p {:g}", s.top_p);
  return out + (s.stop.empty() ? ", no stop token" : fmt::format(", stop {}", fmt::join(s.stop, " ")));
}

OrderedJson events_json(const EventCounts& counts) {
  OrderedJson events = OrderedJson::array();
  for (std::size_t i = 0; i < counts.events.size(); ++i) {
    const Interval interval = clopper_pearson(counts.events[i].count, counts.samples());
    events.push_back({{"event", json_of(event_spec_of(counts.events[i].event))},
                      {"count", counts.events[i].count},
                      {"q", counts.q(i)},
                      {"interval", {interval.low, interval.high}}});
  }
  return {{"samples", counts.samples()}, {"sampling", json_of(counts.sampling)}, {"events", events}};
}

}  // namespace

void show_events(const EventCounts& counts, bool json) {
  if (json) {
    print_json(events_json(counts));
    return;
  }
  const std::uint64_t n = counts.samples();
  fmt::print("{} on {}: {} texts (2^{:.4g}), {} {}\n", printable(counts.model), printable(counts.law), n,
             std::log2(static_cast<double>(n)), counts.events.size(),
             counts.events.size() == 1 ? "event" : "events");
  for (const TruthRange& range : counts.ranges) fmt::print("  {}\n", printable(describe(range), 200));
  fmt::print("  {}\n", sampling_text(counts.sampling));
  if (!counts.model_sha256.empty()) fmt::print("  model sha256 {}\n", counts.model_sha256);
  if (!counts.law_sha256.empty()) fmt::print("  law   sha256 {}\n", counts.law_sha256);
  fmt::print("\n  {:>14} {:>11}  {:<24}  event\n", "count", "q", "95% interval");
  for (std::size_t i = 0; i < counts.events.size(); ++i) {
    const auto& [event, count] = counts.events[i];
    const Interval interval = clopper_pearson(count, n);
    fmt::print("  {:>14} {:>11.3e}  {:<24}  {}\n", count, counts.q(i),
               fmt::format("[{:.3e}, {:.3e}]", interval.low, interval.high), text_of(event_spec_of(event)));
  }
}

}  // namespace deeptail::cli
