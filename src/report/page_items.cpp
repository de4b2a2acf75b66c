#include <algorithm>
#include <map>
#include <tuple>

#include "report/page_json.h"
#include "report/score.h"

namespace deeptail {

namespace {

std::size_t number_of(std::map<std::string, std::size_t>& numbers, PageJson& list, const std::string& text) {
  const auto [entry, fresh] = numbers.try_emplace(text, numbers.size());
  if (fresh) list.push_back(text);
  return entry->second;
}

PageJson json_of(const ItemDetail& detail) {
  PageJson survive = PageJson::array(), acceptance = PageJson::array();
  for (const double v : detail.survive_fraction) survive.push_back(significant(v, 3));
  for (const double v : detail.acceptance) acceptance.push_back(rounded(v, 2));
  return {{"triggers", detail.triggers}, {"n_triggers", detail.n_triggers}, {"survive", survive},
          {"accept", acceptance},        {"n_levels", detail.n_levels},     {"command", detail.command}};
}

}  // namespace

// Columns rather than rows: shorter, and they deflate well.
void add_page_items(const Report& r, const Run& run, PageJson& out) {
  std::map<std::string, std::size_t> models, dists, variants, statuses, warnings;
  for (const std::string& name : r.models) models.try_emplace(name, models.size());
  for (const std::string& name : r.dists) dists.try_emplace(name, dists.size());
  for (const ReportVariant& v : r.variants) variants.try_emplace(v.name, variants.size());
  PageJson targets = PageJson::array(), columns, status_names = PageJson::array(),
           warning_texts = PageJson::array();
  const RunItem* last = nullptr;
  for (const RunItem& item : run.items) {
    if (!last || last->model != item.model || last->dist != item.dist || last->target != item.target)
      targets.push_back({models[item.model], dists[item.dist], item.target, item.target_text,
                         item.truth_count, item.truth_samples});
    last = &item;
    columns["t"].push_back(targets.size() - 1);
    columns["v"].push_back(variants[item.variant]);
    columns["r"].push_back(item.replica);
    columns["p"].push_back(log10_of(item.log_p));
    columns["lo"].push_back(log10_of(item.log_low));
    columns["hi"].push_back(log10_of(item.log_high));
    columns["in"].push_back(scorable(item) ? PageJson(truth_against_interval(item)) : PageJson(nullptr));
    columns["c"].push_back(significant(item.cost.forward_equivalents > 0.0
                                           ? item.cost.forward_equivalents
                                           : static_cast<double>(item.cost.forward),
                                       3));
    columns["s"].push_back(significant(item.cost.seconds, 3));
    columns["st"].push_back(number_of(statuses, status_names, item.status));
    PageJson mine = PageJson::array();
    for (const std::string& warning : item.warnings)
      mine.push_back(number_of(warnings, warning_texts, warning));
    columns["w"].push_back(mine);
  }
  out["targets"] = targets;
  out["items"] = columns;
  out["statuses"] = status_names;
  out["warnings"] = warning_texts;
}

void add_page_details(const Report& r, const Run& run, const ItemDetails& details, PageJson& out) {
  constexpr std::size_t kRoom = 1'000'000;  // bytes before they are deflated to a third or less
  std::map<std::string, bool> headline;
  for (const ReportVariant& v : r.variants) headline[v.name] = v.headline;
  // Ids are hashes, so their order spreads what fits evenly over the run.
  std::vector<std::size_t> order(run.items.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    const auto rank = [&](const RunItem& i) { return std::tuple(!headline[i.variant], i.id); };
    return rank(run.items[a]) < rank(run.items[b]);
  });
  std::map<std::size_t, PageJson> kept;
  std::size_t size = 0, n = 0;
  for (const std::size_t i : order) {
    const auto found = details.find(run.items[i].id);
    if (found == details.end()) continue;
    ++n;
    PageJson json = json_of(found->second);
    if (size > kRoom) continue;
    size += json_text(json).size();
    kept[i] = std::move(json);
  }
  PageJson items = PageJson::array(), values = PageJson::array();
  for (auto& [i, json] : kept) {
    items.push_back(i);
    values.push_back(std::move(json));
  }
  out["details"] = {{"known", n}, {"items", items}, {"values", values}};
}

}  // namespace deeptail
