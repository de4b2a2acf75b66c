// Two runs side by side.
#include <algorithm>
#include <map>
#include <tuple>

#include "core/json.h"
#include "report/differences.h"

namespace deeptail {

namespace {

using ItemKey = std::tuple<std::string, std::string, std::vector<TokenId>, std::string, std::uint64_t>;
ItemKey key_of(const RunItem& i) { return {i.model, i.dist, i.target, i.variant, i.replica}; }

template <class Named>
void check_same_files(const std::vector<Named>& a, const std::vector<Named>& b, std::string_view what) {
  for (const Named& mine : a)
    for (const Named& other : b)
      if (mine.name == other.name && mine.sha256 != other.sha256)
        throw InputError(
            "the {} {} is another one in each run (sha256 {} and {}): only runs of the same {}s "
            "can be compared",
            what, printable(mine.name), mine.sha256.substr(0, 12), other.sha256.substr(0, 12), what);
}

// Both are judged by one truth.
void share_truth(RunItem& a, RunItem& b) {
  RunItem& from = a.truth_samples >= b.truth_samples ? a : b;
  RunItem& to = &from == &a ? b : a;
  to.truth_count = from.truth_count;
  to.truth_samples = from.truth_samples;
}

}  // namespace

CommonItems common_items(Run a, Run b) {
  check_same_files(a.header.models, b.header.models, "model");
  check_same_files(a.header.distributions, b.header.distributions, "distribution");
  std::map<ItemKey, RunItem*> of_b;
  for (RunItem& item : b.items) of_b[key_of(item)] = &item;
  CommonItems out{.a = {.header = a.header}, .b = {.header = b.header}};
  for (RunItem& item : a.items) {
    const auto found = of_b.find(key_of(item));
    if (found == of_b.end()) continue;
    share_truth(item, *found->second);
    out.a.items.push_back(item);
    out.b.items.push_back(*found->second);
  }
  if (out.a.items.empty())
    throw InputError(
        "the runs \"{}\" and \"{}\" have no item in common: expected estimates of the same model, "
        "distribution, target and setting in both",
        printable(a.header.suite_name), printable(b.header.suite_name));
  out.only_a = a.items.size() - out.a.items.size();
  out.only_b = b.items.size() - out.b.items.size();
  sort_items(out.a.items);
  sort_items(out.b.items);
  return out;
}

std::vector<Difference> run_differences(const CommonItems& common, const Report& report, ThreadPool& pool) {
  std::map<std::tuple<std::string, std::string, std::string>, std::vector<std::size_t>> cells;
  for (std::size_t i = 0; i < common.a.items.size(); ++i) {
    const RunItem& item = common.a.items[i];
    cells[{item.model, item.dist, item.variant}].push_back(i);
  }
  const auto losses = [&](const Run& run, const std::vector<std::size_t>& members) {
    std::vector<const RunItem*> items;
    for (const std::size_t i : members) items.push_back(&run.items[i]);
    return target_losses(items, report.spb);
  };
  std::vector<Difference> out;
  for (const Score& score : report.scores) {
    const auto& members =
        cells.at({report.models[score.model], report.dists[score.dist], report.variants[score.variant].name});
    auto found = difference_of(losses(common.a, members), losses(common.b, members), pool);
    if (!found) continue;
    std::tie(found->model, found->dist, found->a, found->b) =
        std::tuple(score.model, score.dist, score.variant, score.variant);
    out.push_back(*found);
  }
  return out;
}

}  // namespace deeptail
