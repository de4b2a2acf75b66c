// Several runs as one, for a report.
#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <tuple>

#include "core/json.h"
#include "deeptail/runs.h"

namespace deeptail {

namespace {

// Adds what the others name; the same name must mean the same file.
template <class Named>
void join_files(std::vector<Named>& all, const std::vector<Named>& more, std::string_view what) {
  for (const Named& file : more) {
    const auto known =
        std::find_if(all.begin(), all.end(), [&](const Named& f) { return f.name == file.name; });
    if (known == all.end())
      all.push_back(file);
    else if (known->sha256 != file.sha256)
      throw InputError("the runs differ in their {} {} (sha256 {} and {}): report them one by one", what,
                       printable(file.name), known->sha256.substr(0, 12), file.sha256.substr(0, 12));
  }
}

// Both, where they differ.
void join_text(std::string& all, const std::string& more, std::string_view between) {
  if (more == all || more.empty()) return;
  all += fmt::format("{}{}", between, more);
}

void join_headers(RunHeader& all, const RunHeader& more) {
  join_files(all.models, more.models, "model");
  join_files(all.distributions, more.distributions, "distribution");
  join_files(all.truths, more.truths, "truth");
  join_files(all.temperatures, more.temperatures, "temperatures");
  join_text(all.suite_name, more.suite_name, ", ");
  join_text(all.suite_text, more.suite_text, "\n");
  if (all.version.find(more.version) == std::string::npos) join_text(all.version, more.version, ", ");
  if (all.device.find(more.device) == std::string::npos) join_text(all.device, more.device, ", ");
  all.created = std::min(all.created, more.created);
  all.items += more.items;
}

}  // namespace

Run join_runs(std::vector<Run> runs) {
  if (runs.empty()) throw InputError("no runs to join");
  Run out = std::move(runs.front());
  for (Run& run : std::span(runs).subspan(1)) {
    join_headers(out.header, run.header);
    out.torn += run.torn;
    out.items.insert(out.items.end(), std::make_move_iterator(run.items.begin()),
                     std::make_move_iterator(run.items.end()));
  }
  std::set<std::string_view> seen;
  for (const RunItem& item : out.items)
    if (!seen.insert(item.id).second)
      throw InputError("two of the runs have an estimate of {} on {} by {} (item {}): report them one by one",
                       item.target_text.empty() ? fmt::format("token {}", fmt::join(item.target, ", "))
                                                : printable(item.target_text),
                       printable(item.dist), printable(item.variant), item.id);
  sort_items(out.items);
  return out;
}

Run complete_targets(Run run) {
  using Place = std::tuple<std::string, std::string, std::vector<TokenId>>;
  std::map<std::string, std::set<std::pair<std::string, std::uint64_t>>>
      settings;  // of a model; and replicas
  std::map<Place, std::size_t> have;
  for (const RunItem& item : run.items) {
    settings[item.model].emplace(item.variant, item.replica);
    ++have[{item.model, item.dist, item.target}];
  }
  std::erase_if(run.items, [&](const RunItem& item) {
    return have[{item.model, item.dist, item.target}] < settings[item.model].size();
  });
  return run;
}

}  // namespace deeptail
