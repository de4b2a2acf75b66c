// Counts of events with resume.
#include <filesystem>

#include "core/write_file.h"
#include "truth/event_counter.h"
#include "truth/event_counts.h"
#include "truth/resume.h"
#include "truth/truth.h"

namespace deeptail {

namespace {

TruthRange texts_of(const EventCountRequest& request, std::uint64_t count) {
  return {.source = request.source, .seed = request.seed, .first = request.first, .count = count};
}

// Throws InputError unless the file is of this request; returns whether it is as far as `samples`.
EventCounts read_own(const EventCountRequest& request, const std::string& path, std::string_view otherwise) {
  if (!is_event_counts(path))
    throw InputError("{}: holds something else than counts of events; choose another file", path)
        .with_hint(Hint::kOut);
  EventCounts found = read_event_counts(path);
  check_same_events(found, path, request.subject, "this request");
  const bool same = found.ranges.size() == 1 && found.ranges[0] == texts_of(request, found.ranges[0].count) &&
                    found.samples() <= request.samples;
  if (!same)
    throw InputError("{}: {} ({}); choose another file", path, otherwise, describe(found.ranges[0]))
        .with_hint(Hint::kOut);
  return found;
}

bool is_counted(const EventCountRequest& request) {
  if (!std::filesystem::exists(request.out)) return false;
  const EventCounts found = read_own(request, request.out, "holds another count");
  if (found.samples() < request.samples)
    throw InputError(
        "{}: holds another count ({}); choose another file, or count only what is missing and merge",
        request.out, describe(found.ranges[0]))
        .with_hint(Hint::kRest);
  return true;
}

}  // namespace

CountOutcome count_events(const LoadedModel& model, const InputLaw& law, const EventCountRequest& request,
                          ThreadPool& pool, const Watch& watch) {
  std::vector<EventSpec> specs;
  for (const EventCounts::Item& item : request.subject.events) specs.push_back(event_spec_of(item.event));
  EventCounts earlier = request.subject;
  std::vector<std::uint64_t> counts(specs.size());  // of this run
  std::optional<EventCounter> counter;
  const ResumableCount job{
      .first = request.first,
      .samples = request.samples,
      .out = request.out,
      .is_finished = [&] { return is_counted(request); },
      .load = [&](const std::string& partial) -> std::uint64_t {
        counter.emplace(model, law, request.subject.sampling, specs, request.seed, pool);
        if (!std::filesystem::exists(partial)) return 0;
        earlier = read_own(request, partial, "is the unfinished work of another count");
        return earlier.samples();
      },
      .count =
          [&](std::uint64_t first, std::uint64_t n, const Watch& told) {
            return for_each_batch(
                first, n, [&](std::uint64_t at, std::size_t some) { counter->add(at, some, counts); }, told);
          },
      .save =
          [&](const std::string& path, std::uint64_t done) {
            EventCounts total = earlier;
            total.ranges = {texts_of(request, done)};
            for (std::size_t i = 0; i < counts.size(); ++i) total.events[i].count += counts[i];
            write_file(path, to_json(total));
          },
      .remove = [&](const std::string& partial) { std::filesystem::remove(partial); }};
  return count_resumably(job, watch);
}

}  // namespace deeptail
