// A run against counts that have grown, or been made again, since its targets were chosen.
#include <algorithm>
#include <filesystem>
#include <map>
#include <utility>

#include "core/json.h"
#include "core/sha256.h"
#include "deeptail/runs.h"
#include "truth/truth.h"

namespace deeptail {

namespace {

template <class Named>
const Named& named(const std::vector<Named>& files, const std::string& name, std::string_view what) {
  const auto found = std::find_if(files.begin(), files.end(), [&](const Named& f) { return f.name == name; });
  if (found == files.end())
    throw InputError("the run has estimates of the {} {}, which its run.json does not name", what,
                     printable(name));
  return *found;
}

Truth counts_for(const RunHeader& header, const RunItem& item, const std::string& path) {
  const auto& model = named(header.models, item.model, "model");
  const auto& dist = named(header.distributions, item.dist, "distribution");
  return read_counts_of(
      {.model = model.name, .dist = dist.name, .model_sha256 = model.sha256, .dist_sha256 = dist.sha256},
      model.d_vocab, path);
}

}  // namespace

Run rescore_run(Run run, const std::string& folder) {
  std::map<std::pair<std::string, std::string>, Truth> truths;
  run.header.truths.clear();
  for (RunItem& item : run.items) {
    const auto [found, fresh] = truths.try_emplace({item.model, item.dist});
    if (fresh) {
      const std::string name = item.model + "-" + item.dist;
      const std::string path = (std::filesystem::path(folder) / truth_name(item.model, item.dist)).string();
      if (item.truth_known() || std::filesystem::exists(path)) {
        found->second = counts_for(run.header, item, path);
        run.header.truths.push_back({name, sha256_of_file(path)});
      }
    }
    item.truth_samples = found->second.samples();
    item.truth_count = 0;
    for (const TokenId token : item.target) item.truth_count += found->second.count(token);
  }
  run.header.suite_text += fmt::format("# scored against the counts in {}\n", printable(folder));
  return run;
}

}  // namespace deeptail
