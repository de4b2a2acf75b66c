#include "report/differences.h"

#include <algorithm>
#include <cmath>
#include <tuple>

namespace deeptail {

namespace {

using Cell = std::tuple<std::size_t, std::size_t, std::size_t>;  // model, dist, variant

std::map<Cell, TargetLosses> losses_by_cell(std::span<const RunItem* const> items, const Report& report) {
  std::map<std::string, std::size_t> models, dists, variants;
  for (const std::string& name : report.models) models.try_emplace(name, models.size());
  for (const std::string& name : report.dists) dists.try_emplace(name, dists.size());
  for (const ReportVariant& v : report.variants) variants.try_emplace(v.name, variants.size());
  std::map<Cell, std::vector<const RunItem*>> cells;
  for (const RunItem* item : items)
    cells[{models.at(item->model), dists.at(item->dist), variants.at(item->variant)}].push_back(item);
  std::map<Cell, TargetLosses> out;
  for (const auto& [cell, members] : cells) out[cell] = target_losses(members, report.spb);
  return out;
}

}  // namespace

std::optional<Difference> difference_of(const TargetLosses& a, const TargetLosses& b, ThreadPool& pool) {
  constexpr BootstrapConfig kConfig{.resamples = 1000, .seed = 1};
  std::array<std::vector<double>, kReportProfiles> loss_a, loss_b;
  for (const auto& [target, mine] : a) {
    const auto found = b.find(target);
    if (found == b.end()) continue;
    for (std::size_t k = 0; k < kReportProfiles; ++k) {
      loss_a[k].push_back(mine[k]);
      loss_b[k].push_back(found->second[k]);
    }
  }
  Difference out{.targets = loss_a[0].size()};
  if (out.targets < 2) return std::nullopt;
  // Resampled means of n values vary by a factor sqrt((n - 1) / n) less than means of new ones.
  const double n = static_cast<double>(out.targets), wider = std::sqrt(n / (n - 1.0));
  for (std::size_t k = 0; k < kReportProfiles; ++k) {
    const PairedBootstrap found = paired_bootstrap(loss_a[k], loss_b[k], kConfig, pool);
    const double mean = found.difference;
    out.loss[k] = {mean, mean - wider * (mean - found.ci95[0]), mean + wider * (found.ci95[1] - mean)};
  }
  return out;
}

std::vector<Difference> setting_differences(std::span<const RunItem* const> items, const Report& report,
                                            ThreadPool& pool) {
  constexpr std::size_t kMost = 4000;
  const std::map<Cell, TargetLosses> cells = losses_by_cell(items, report);
  const std::size_t n = report.variants.size();
  const bool only_headlines = report.pairs.size() * n * (n - 1) / 2 > kMost;
  const auto skipped = [&](std::size_t v) { return only_headlines && !report.variants[v].headline; };
  std::vector<Difference> out;
  for (auto a = cells.begin(); a != cells.end(); ++a)
    for (auto b = std::next(a); b != cells.end(); ++b) {
      const auto [model, dist, variant_a] = a->first;
      const auto [model_b, dist_b, variant_b] = b->first;
      if (model != model_b || dist != dist_b) break;
      if (skipped(variant_a) || skipped(variant_b)) continue;
      if (auto found = difference_of(a->second, b->second, pool)) {
        std::tie(found->model, found->dist, found->a, found->b) =
            std::tuple(model, dist, variant_a, variant_b);
        out.push_back(*found);
      }
    }
  return out;
}

}  // namespace deeptail
