// Items of a run, sorted into cells and scored.
#include "deeptail/report.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "core/json.h"
#include "deeptail/method_rows.h"
#include "report/differences.h"
#include "report/errors.h"
#include "report/score.h"

namespace deeptail {

namespace {

// Methods that this version does not have follow by name.
std::size_t method_rank(std::string_view method) {
  const auto rows = method_rows();
  return static_cast<std::size_t>(std::find(rows.begin(), rows.end(), find_method_row(method)) -
                                  rows.begin());
}

// Of `names`, those that occur in some item, in order; then what the header does not name.
template <class Names>
std::vector<std::string> present(const Names& names, const std::vector<const RunItem*>& items,
                                 std::string RunItem::*field) {
  std::vector<std::string> order;
  for (const auto& entry : names) order.push_back(entry.name);
  for (const RunItem* item : items)
    if (std::find(order.begin(), order.end(), item->*field) == order.end()) order.push_back(item->*field);
  std::erase_if(order, [&](const std::string& name) {
    return std::none_of(items.begin(), items.end(), [&](const RunItem* i) { return i->*field == name; });
  });
  return order;
}

std::size_t index_of(const std::vector<std::string>& names, const std::string& name) {
  return static_cast<std::size_t>(std::find(names.begin(), names.end(), name) - names.begin());
}

std::vector<ReportVariant> variants_of(const std::vector<const RunItem*>& items) {
  std::map<std::tuple<std::size_t, std::string, std::string>, std::size_t> seen;
  for (const RunItem* item : items) ++seen[{method_rank(item->method), item->method, item->variant}];
  std::vector<ReportVariant> out;
  for (const auto& [key, count] : seen) out.push_back({std::get<2>(key), std::get<1>(key)});
  return out;
}

void choose_shifts(const std::vector<const RunItem*>& items, Report& out) {
  double q_min = 1.0;
  for (const RunItem* item : items)
    if (scorable(*item)) q_min = std::min(q_min, item->q());
  if (out.scored() == 0) q_min = EpsilonQuery{}.qmin;  // nothing will be scored by it
  for (std::size_t k = 0; k < kReportProfiles; ++k) {
    const Profile& profile = profiles()[k];
    const EpsilonChoice choice = choose_epsilon({.alpha = profile.alpha, .qmin = q_min});
    out.spb[k] = {.alpha = profile.alpha, .gamma = profile.gamma, .epsilon = choice.epsilon};
    out.epsilon_rule[k] = std::string(choice.rule);
  }
}

// The setting named like its method; without one, the setting that worked hardest.
void choose_headlines(Report& out) {
  std::vector<double> cost(out.variants.size(), 0.0), cells(out.variants.size(), 0.0);
  for (const Score& score : out.scores) {
    cost[score.variant] += score.mean_log10_forwards;
    ++cells[score.variant];
  }
  std::map<std::string, std::size_t> best;
  const auto rank = [&](std::size_t v) {
    return std::pair(out.variants[v].name == out.variants[v].method, cost[v] / cells[v]);
  };
  for (std::size_t v = 0; v < out.variants.size(); ++v) {
    const auto [entry, fresh] = best.try_emplace(out.variants[v].method, v);
    if (!fresh && rank(v) > rank(entry->second)) entry->second = v;
  }
  for (const auto& [method, v] : best) out.variants[v].headline = true;
}

using ItemList = std::vector<const RunItem*>;

std::vector<ReportPair> score_pairs(const ItemList& items, const Report& report) {
  std::map<std::pair<std::size_t, std::size_t>, std::map<std::vector<TokenId>, const RunItem*>> targets;
  for (const RunItem* item : items)
    targets[{index_of(report.models, item->model), index_of(report.dists, item->dist)}][item->target] = item;
  std::vector<ReportPair> out;
  for (const auto& [key, by_target] : targets) {
    ItemList one_each;
    for (const auto& [target, item] : by_target) one_each.push_back(item);
    out.push_back(score_pair(one_each, report.spb));
    std::tie(out.back().model, out.back().dist) = key;
  }
  return out;
}

}  // namespace

Report make_report(const Run& run, ThreadPool& pool) {
  Report out{.header = run.header, .items = run.items.size(), .torn = run.torn};
  if (run.items.empty())
    throw InputError("the run \"{}\" has no estimates yet: run the suite first",
                     printable(run.header.suite_name));
  ItemList items;
  for (const RunItem& item : run.items) {
    items.push_back(&item);
    if (!item.truth_known())
      ++out.without_truth;
    else if (!scorable(item))
      ++out.unscored;
  }
  out.models = present(run.header.models, items, &RunItem::model);
  out.dists = present(run.header.distributions, items, &RunItem::dist);
  out.variants = variants_of(items);
  choose_shifts(items, out);

  std::map<std::string, std::size_t> variant_index;
  for (std::size_t v = 0; v < out.variants.size(); ++v) variant_index[out.variants[v].name] = v;
  std::map<std::tuple<std::size_t, std::size_t, std::size_t>, ItemList> cells;
  for (const RunItem* item : items)
    cells[{index_of(out.models, item->model), index_of(out.dists, item->dist), variant_index[item->variant]}]
        .push_back(item);
  for (const auto& [key, members] : cells) {
    out.scores.push_back(score_items(members, out.spb, pool));
    Score& score = out.scores.back();
    std::tie(score.model, score.dist, score.variant) = key;
  }
  choose_headlines(out);
  out.pairs = score_pairs(items, out);
  out.differences = setting_differences(items, out, pool);
  out.errors = error_summaries(items, out);
  out.answered = answered_losses(items, out);
  return out;
}

}  // namespace deeptail
