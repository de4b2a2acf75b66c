// The file form deeptail-event-counts-1.
#include <algorithm>
#include <cmath>

#include "core/gzip.h"
#include "events/event_spec.h"
#include "truth/event_counts.h"
#include "truth/truth.h"

namespace deeptail {

namespace {

constexpr std::string_view kEventFormat = "deeptail-event-counts-1";

SamplingConfig sampling_of(const JsonNode& json) {
  json.expect_object();
  SamplingConfig out{.temperature = json.at("temperature").number(), .greedy = json.at("greedy").boolean()};
  out.top_k = json.at("top_k").count(0, kMaxToken);
  out.top_p = json.at("top_p").number();
  out.stop = json.at("stop").token_ids(kMaxToken);
  if (!(out.temperature > 0.0)) json.at("temperature").fail_expected("a number above 0");
  if (!(out.top_p > 0.0 && out.top_p <= 1.0)) json.at("top_p").fail_expected("a number above 0, at most 1");
  return out;
}

std::vector<std::string> lines_of(const std::vector<EventSpec>& events) {
  std::vector<std::string> out;
  for (const EventSpec& spec : events) out.push_back(json_text(json_of(spec)));
  return out;
}

}  // namespace

std::uint64_t EventCounts::samples() const {
  std::uint64_t sum = 0;
  for (const TruthRange& range : ranges) sum += range.count;
  return sum;
}
double EventCounts::q(std::size_t event) const {
  return static_cast<double>(events[event].count) / static_cast<double>(samples());
}

OrderedJson json_of(const SamplingConfig& sampling) {
  return {{"temperature", sampling.temperature},
          {"greedy", sampling.greedy},
          {"top_k", sampling.top_k},
          {"top_p", sampling.top_p},
          {"stop", sampling.stop}};
}

bool same_sampling(const SamplingConfig& a, const SamplingConfig& b) { return json_of(a) == json_of(b); }

EventSpec event_spec_of(const std::string& event) {
  const Json document = parse_json(event, "event");
  return parse_event_spec(JsonNode(document, "event"));
}

std::vector<std::string> parse_events(std::string_view text, std::string_view where) {
  return lines_of(parse_event_specs(text, where));
}

EventCounts parse_event_counts(std::string_view text, std::string_view where) {
  const Json json = parse_json(text, where);
  const JsonNode root(json, where);
  if (const JsonNode format = root.at("format"); format.text() != kEventFormat)
    format.fail_expected(fmt::format("\"{}\"", kEventFormat));
  EventCounts out{.model = root.at("model").text(), .law = root.at("law").text()};
  out.model_sha256 = hash_or_none(root.at("model_sha256"));
  out.law_sha256 = hash_or_none(root.at("law_sha256"));
  out.sampling = sampling_of(root.at("sampling"));
  const std::uint64_t samples = root.at("samples").count(1, kMaxSamples);
  out.ranges = parse_ranges(root.at("ranges"), where);
  std::uint64_t left = samples;
  for (const TruthRange& range : out.ranges) {
    if (range.count > left) throw InputError("{}: the ranges hold more than the {} samples", where, samples);
    left -= range.count;
  }
  if (left != 0)
    throw InputError("{}: the ranges hold {} samples fewer than the {} stated", where, left, samples);
  std::vector<EventSpec> specs;
  for (const JsonNode& node : root.at("events").elements()) {
    specs.push_back(parse_event_spec(node.at("event")));
    out.events.push_back({.count = node.at("count").count(0, samples)});
  }
  if (specs.empty()) root.at("events").fail_expected("at least one event");
  check_distinct_events(specs, where);
  const std::vector<std::string> lines = lines_of(specs);
  for (std::size_t i = 0; i < lines.size(); ++i) out.events[i].event = lines[i];
  return out;
}

EventCounts read_event_counts(const std::string& path) {
  const InputFile file(path);
  return parse_event_counts(file.text(), path);
}

bool is_event_counts(const std::string& path) {
  const InputFile file(path);
  if (is_compressed(file.text())) return false;
  const Json json = parse_json(file.text(), path);
  const auto format = json.find("format");
  return format != json.end() && format->is_string() && format->get_ref<const std::string&>() == kEventFormat;
}

std::string to_json(const EventCounts& counts) {
  OrderedJson out = {{"format", kEventFormat},
                     {"model", counts.model},
                     {"law", counts.law},
                     {"model_sha256", counts.model_sha256},
                     {"law_sha256", counts.law_sha256},
                     {"sampling", json_of(counts.sampling)},
                     {"samples", counts.samples()},
                     {"ranges", json_of(counts.ranges)}};
  OrderedJson& events = out["events"] = OrderedJson::array();
  for (const EventCounts::Item& item : counts.events)
    events.push_back({{"event", json_of(event_spec_of(item.event))}, {"count", item.count}});
  return json_text(out) + "\n";
}

void check_same_events(const EventCounts& a, std::string_view where_a, const EventCounts& b,
                       std::string_view where_b) {
  const auto differ = [&](std::string_view what) {
    throw InputError("{} and {} count different {}", where_a, where_b, what);
  };
  const auto subject = [](const EventCounts& c) {
    return Truth{
        .model = c.model, .dist = c.law, .model_sha256 = c.model_sha256, .dist_sha256 = c.law_sha256};
  };
  check_same_subject(subject(a), where_a, subject(b), where_b);
  if (!same_sampling(a.sampling, b.sampling)) differ("ways to sample");
  bool same = a.events.size() == b.events.size();
  for (std::size_t i = 0; same && i < a.events.size(); ++i) same = a.events[i].event == b.events[i].event;
  if (!same) differ("events");
}

EventCounts merge_event_counts(std::span<const std::string> paths) {
  if (paths.empty()) throw InputError("nothing to merge: expected files of counts");
  EventCounts merged = read_event_counts(paths[0]);
  for (const std::string& path : paths.subspan(1)) {
    const EventCounts next = read_event_counts(path);
    check_same_events(merged, paths[0], next, path);
    if (next.samples() > kMaxSamples - merged.samples())
      throw InputError("{}: more than 2^62 texts in all", path);
    merged.ranges.insert(merged.ranges.end(), next.ranges.begin(), next.ranges.end());
    if (const auto shared = sort_ranges(merged.ranges))
      throw InputError("{}: counts texts that an earlier file has counted already: {} overlaps {}", path,
                       describe(shared->first), describe(shared->second));
    for (std::size_t i = 0; i < merged.events.size(); ++i) merged.events[i].count += next.events[i].count;
  }
  join_ranges(merged.ranges);
  return merged;
}

}  // namespace deeptail
