#include "runs/run_folder.h"

#include "runs/packed_run.h"

#include <algorithm>
#include <tuple>

namespace deeptail {

void check_same_run(const RunHeader& found, const RunHeader& wanted, std::string_view folder) {
  const auto differs = [&](std::string_view what, std::string_view was, std::string_view is) {
    throw InputError(
        "{}: holds a run with another {}: {} then, {} now; use another folder, or what it was made with",
        folder, what, was, is)
        .with_hint(Hint::kOut);
  };
  const auto same = [&](std::string_view what, std::string_view was, std::string_view is) {
    if (was != is) differs(what, was, is);
  };
  const auto same_files = [&](std::string_view what, const auto& was, const auto& is) {
    if (was.size() != is.size())
      differs(fmt::format("number of {}s", what), std::to_string(was.size()), std::to_string(is.size()));
    for (std::size_t i = 0; i < was.size(); ++i) {
      same(what, was[i].name, is[i].name);
      same(fmt::format("{} {} ({}SHA-256)", what, is[i].name,
                       what == "model" ? "its weights or its config.json differ: " : ""),
           was[i].sha256, is[i].sha256);
    }
  };
  same("suite (SHA-256)", found.suite_sha256, wanted.suite_sha256);
  same_files("model", found.models, wanted.models);
  same_files("distribution", found.distributions, wanted.distributions);
  same_files("truth", found.truths, wanted.truths);
  same_files("table of temperatures", found.temperatures, wanted.temperatures);
  same("version of deeptail", found.version, wanted.version);
  same("device", found.device, wanted.device);
  same("number of items", std::to_string(found.items), std::to_string(wanted.items));
}

void sort_items(std::vector<RunItem>& items) {
  const auto key = [](const RunItem& i) { return std::tie(i.model, i.dist, i.target, i.variant, i.replica); };
  std::sort(items.begin(), items.end(), [&](const RunItem& a, const RunItem& b) { return key(a) < key(b); });
}

Run read_run(const std::string& folder) {
  return read_run(folder, [](const std::string&, std::string_view) {});
}

RunText run_text(const std::string& folder) {
  if (is_packed_run(folder)) {
    PackedText packed = unpack_run(read_from(folder, 0), folder);
    return {std::move(packed.header), folder, {{folder, std::move(packed.shard)}}};
  }
  RunText out{read_from(folder + "/run.json", 0), folder + "/run.json"};
  for (const std::string& path : shard_paths(folder)) out.shards.push_back({path, read_from(path, 0)});
  return out;
}

Run read_run(const std::string& folder, const OnLine& on_line) {
  const RunText text = run_text(folder);
  Run run{.header = parse_run_header(text.header, text.header_path)};
  struct Place {
    std::string_view line;
    std::string where;
  };
  std::map<std::string, Place> first;  // of every item
  for (const auto& [path, shard] : text.shards) {
    const ShardScan scan = scan_shard(shard, path);
    run.torn += scan.torn;
    for (const ShardScan::Entry& entry : scan.committed) {
      const std::string where = fmt::format("{} line {}", path, entry.line);
      const auto [known, is_new] = first.try_emplace(entry.id, Place{entry.data, where});
      if (is_new) {
        run.items.push_back(parse_data_line(entry.data, where));
        if (run.items.back().id != entry.id)
          throw InputError("{}: key \"item\": expected {}, as its commit record says", where, entry.id);
        on_line(entry.id, entry.data);
      } else if (!same_result(known->second.line, entry.data, where))
        throw InputError(
            "{} and {}: two estimates of item {} that differ; one of the shards is of another run",
            known->second.where, where, entry.id);
    }
  }
  sort_items(run.items);
  return run;
}

}  // namespace deeptail
