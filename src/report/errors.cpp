#include "report/errors.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>
#include <set>

#include "report/score.h"

namespace deeptail {

namespace {

using ItemPointers = std::vector<const RunItem*>;
using TargetKey = std::pair<std::string, std::vector<TokenId>>;  // distribution, tokens

bool is_zero(const RunItem& item) { return std::isinf(item.log_p); }
double log10_ratio(const RunItem& item) { return (item.log_p - std::log(item.q())) / std::numbers::ln10; }

// The mean of the middle two where their number is even; NaN of none.
double median(std::vector<double> values) {
  if (values.empty()) return NAN;
  std::sort(values.begin(), values.end());
  const std::size_t n = values.size();
  return 0.5 * (values[(n - 1) / 2] + values[n / 2]);
}

ErrorSummary summary_of(const ItemPointers& items) {
  ErrorSummary out{.estimates = items.size()};
  std::set<TargetKey> targets;
  std::vector<double> all, rare, common;
  for (const RunItem* item : items) {
    targets.insert({item->dist, item->target});
    const bool is_rare = item->q() < kRareTruth;
    out.rare += is_rare;
    out.zeros += is_zero(*item);
    out.rare_zeros += is_rare && is_zero(*item);
    if (is_zero(*item)) continue;
    const double ratio = log10_ratio(*item);
    all.push_back(ratio);
    (is_rare ? rare : common).push_back(ratio);
    out.too_high += ratio > 0.0;
    out.within_2 += std::abs(ratio) <= std::log10(2.0);
  }
  out.targets = targets.size();
  out.median = median(all);
  out.median_rare = median(rare);
  out.median_common = median(common);
  if (all.empty()) return out;
  const double n = static_cast<double>(all.size());
  double mean = 0.0, square = 0.0;
  for (const double ratio : all) mean += ratio / n;
  for (const double ratio : all) square += (ratio - mean) * (ratio - mean) / n;
  out.mean = mean;
  out.deviation = std::sqrt(square);
  out.lowest = *std::min_element(all.begin(), all.end());
  out.highest = *std::max_element(all.begin(), all.end());
  return out;
}

// What a setting says of one target; several replicas are one answer, their mean loss.
struct Answer {
  std::size_t estimates = 0, zeros = 0;
  std::array<double, kReportProfiles> loss = {};  // sums
};

void add_to(Answer& answer, const RunItem& item, const Report& report) {
  ++answer.estimates;
  answer.zeros += is_zero(item);
  for (std::size_t k = 0; k < kReportProfiles && !is_zero(item); ++k) {
    SpbParameters unshifted = report.spb[k];
    unshifted.epsilon = 0.0;
    answer.loss[k] += spb_weighted(unshifted, item.q(), estimate_of(item));
  }
}

// A method that is mostly zero would leave too few targets for the others.
std::vector<std::size_t> mostly_answering(const Report& report, std::size_t model) {
  std::vector<std::size_t> out;
  for (const ErrorSummary& e : report.errors)
    if (e.model == model && report.variants[e.variant].headline && 2 * e.zeros <= e.estimates)
      out.push_back(e.variant);
  return out;
}

AnsweredLosses answered_of(const ItemPointers& items, const Report& report,
                           const std::vector<std::size_t>& variants) {
  std::map<std::string, std::size_t> column;
  for (std::size_t i = 0; i < variants.size(); ++i) column[report.variants[variants[i]].name] = i;
  std::map<TargetKey, std::vector<Answer>> answers;  // [variants]
  for (const RunItem* item : items) {
    const auto found = column.find(item->variant);
    if (found == column.end()) continue;
    std::vector<Answer>& of_target = answers[{item->dist, item->target}];
    of_target.resize(variants.size());
    add_to(of_target[found->second], *item, report);
  }
  AnsweredLosses out{.of_targets = answers.size(), .variants = variants};
  out.loss.resize(variants.size());
  for (const auto& [target, of_target] : answers) {
    if (std::any_of(of_target.begin(), of_target.end(),
                    [](const Answer& a) { return a.estimates == 0 || a.zeros > 0; }))
      continue;
    ++out.targets;
    for (std::size_t i = 0; i < variants.size(); ++i)
      for (std::size_t k = 0; k < kReportProfiles; ++k)
        out.loss[i][k] += of_target[i].loss[k] / static_cast<double>(of_target[i].estimates);
  }
  for (auto& losses : out.loss)
    for (double& loss : losses) loss /= static_cast<double>(out.targets);  // NaN of none
  return out;
}

}  // namespace

std::vector<ErrorSummary> error_summaries(std::span<const RunItem* const> items, const Report& report) {
  std::map<std::pair<std::string, std::string>, ItemPointers> cells;
  for (const RunItem* item : items)
    if (scorable(*item)) cells[{item->model, item->variant}].push_back(item);
  std::vector<ErrorSummary> out;
  for (std::size_t m = 0; m < report.models.size(); ++m)
    for (std::size_t v = 0; v < report.variants.size(); ++v) {
      const auto found = cells.find({report.models[m], report.variants[v].name});
      if (found == cells.end()) continue;
      out.push_back(summary_of(found->second));
      out.back().model = m;
      out.back().variant = v;
    }
  return out;
}

std::vector<AnsweredLosses> answered_losses(std::span<const RunItem* const> items, const Report& report) {
  std::vector<AnsweredLosses> out;
  for (std::size_t m = 0; m < report.models.size(); ++m) {
    ItemPointers of_model;
    for (const RunItem* item : items)
      if (item->model == report.models[m] && scorable(*item)) of_model.push_back(item);
    const std::vector<std::size_t> variants = mostly_answering(report, m);
    if (variants.empty()) continue;
    out.push_back(answered_of(of_model, report, variants));
    out.back().model = m;
  }
  return out;
}

}  // namespace deeptail
