#include "report/score.h"
#include "core/hypotenuse.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>

namespace deeptail {

namespace {

constexpr double kLn10 = 2.302585092994045684;

MeanError mean_and_error(std::span<const double> values) {
  const double n = static_cast<double>(values.size());
  double mean = 0.0, square = 0.0;
  for (const double v : values) mean += v / n;
  if (!std::isfinite(mean)) return {mean, NAN};
  for (const double v : values) square += (v - mean) * (v - mean);
  return {mean, values.size() > 1 ? std::sqrt(square / (n - 1.0) / n) : NAN};
}

// The mean of f over the replicas of each target.
template <class Function>
std::vector<double> by_target(std::span<const RunItem* const> items, Function f) {
  std::vector<double> out;
  for (std::size_t i = 0; i < items.size();) {
    double sum = 0.0;
    std::size_t n = 0;
    for (; i + n < items.size() && items[i + n]->target == items[i]->target; ++n) sum += f(*items[i + n]);
    out.push_back(sum / static_cast<double>(n));
    i += n;
  }
  return out;
}

// Itakura-Saito after p -> a p^c + b, each target by the fit to the others.
MeanError calibrated(std::span<const double> q, std::span<const double> p, ThreadPool& pool) {
  constexpr std::size_t kFewest = 5;
  if (q.size() < kFewest) return {NAN, NAN};
  const Calibration fit = calibrate(q, p, pool);
  std::vector<double> losses;
  for (std::size_t i = 0; i < q.size(); ++i) losses.push_back(itakura_saito(q[i], fit.leave_one_out[i]));
  return mean_and_error(losses);
}

void add_losses(std::span<const RunItem* const> items, const std::array<SpbParameters, kReportProfiles>& spb,
                ThreadPool& pool, Score& out) {
  for (std::size_t k = 0; k < kReportProfiles; ++k)
    out.loss[k] = mean_and_error(
        by_target(items, [&](const RunItem& i) { return spb_weighted(spb[k], i.q(), estimate_of(i)); }));
  const auto standard = [&](auto loss) {
    return mean_and_error(by_target(items, [&](const RunItem& i) { return loss(i.q(), estimate_of(i)); }));
  };
  out.loss[kLogSquared] = standard(log_squared_error);
  out.loss[kItakuraSaito] = standard(itakura_saito);
  out.loss[kSquared] = standard(squared_error);
  const std::vector<double> q = by_target(items, [](const RunItem& i) { return i.q(); });
  const std::vector<double> p = by_target(items, estimate_of);
  out.loss[kItakuraSaitoCalibrated] = calibrated(q, p, pool);
  out.scored_targets = q.size();
}

// What the truth says about an estimate.
void add_scored(const RunItem& item, Score& out) {
  ++out.scored;
  const int side = truth_against_interval(item);
  ++(side == 0 ? out.inside : side > 0 ? out.too_low : out.too_high);
  if (std::isinf(item.log_p)) return;
  const double log10_ratio = (item.log_p - std::log(item.q())) / kLn10;
  ++out.ratios;
  out.mean_log10_ratio += log10_ratio;
  out.mean_square_log10 += log10_ratio * log10_ratio;
  if (std::abs(log10_ratio) <= std::log10(2.0)) ++out.within_2;
}

void add_estimate(const RunItem& item, Score& out) {
  ++out.estimates;
  if (std::isinf(item.log_p)) ++out.zeros;
  if (std::isfinite(item.log_low) && std::isfinite(item.log_high)) {
    out.mean_log10_width += (item.log_high - item.log_low) / kLn10;
    ++out.widths;
  }
  const double forwards = item.cost.forward_equivalents > 0.0 ? item.cost.forward_equivalents
                                                              : static_cast<double>(item.cost.forward);
  out.mean_log10_forwards += std::log10(std::max(1.0, forwards));
  out.mean_seconds += item.cost.seconds;
}

}  // namespace

int truth_against_interval(const RunItem& item) {
  constexpr double kZ = 1.959963984540054;  // 95%, as the interval
  const double log_q = std::log(item.q());
  const double noise = kZ / std::sqrt(static_cast<double>(item.truth_count));
  const double low = std::isfinite(item.log_p) && std::isfinite(item.log_low)
                         ? item.log_p - hypotenuse(item.log_p - item.log_low, noise)
                         : item.log_low - noise;
  const double high = std::isfinite(item.log_p) && std::isfinite(item.log_high)
                          ? item.log_p + hypotenuse(item.log_high - item.log_p, noise)
                          : item.log_high + noise;
  return log_q > high ? 1 : log_q < low ? -1 : 0;
}

Score score_items(std::span<const RunItem* const> items,
                  const std::array<SpbParameters, kReportProfiles>& spb, ThreadPool& pool) {
  Score out;
  std::vector<const RunItem*> scored;
  std::copy_if(items.begin(), items.end(), std::back_inserter(scored),
               [](const RunItem* item) { return scorable(*item); });
  out.loss.fill({NAN, NAN});
  if (!scored.empty()) add_losses(scored, spb, pool, out);
  for (const RunItem* item : scored) add_scored(*item, out);
  for (const RunItem* item : items) add_estimate(*item, out);
  out.targets = by_target(items, [](const RunItem&) { return 0.0; }).size();
  const double n = static_cast<double>(out.estimates), ratios = static_cast<double>(out.ratios);
  out.mean_log10_ratio /= std::max(1.0, ratios);
  out.mean_square_log10 /= std::max(1.0, ratios);
  out.mean_log10_width /= std::max(1.0, static_cast<double>(out.widths));
  out.mean_log10_forwards /= n;
  out.mean_seconds /= n;
  return out;
}

TargetLosses target_losses(std::span<const RunItem* const> items,
                           const std::array<SpbParameters, kReportProfiles>& spb) {
  TargetLosses out;
  std::map<std::vector<TokenId>, double> estimates;
  for (const RunItem* item : items)
    if (scorable(*item)) ++estimates[item->target];
  for (const RunItem* item : items) {
    if (!scorable(*item)) continue;
    auto& losses = out[item->target];
    for (std::size_t k = 0; k < kReportProfiles; ++k)
      losses[k] += spb_weighted(spb[k], item->q(), estimate_of(*item)) / estimates[item->target];
  }
  return out;
}

ReportPair score_pair(std::span<const RunItem* const> targets,
                      const std::array<SpbParameters, kReportProfiles>& spb) {
  ReportPair out{.targets = targets.size(), .q_min = INFINITY, .q_max = -INFINITY};
  std::map<std::uint64_t, std::vector<std::uint64_t>> counts;  // by samples
  for (const RunItem* item : targets) {
    if (!scorable(*item)) continue;
    ++out.scored;
    out.q_min = std::min(out.q_min, item->q());
    out.q_max = std::max(out.q_max, item->q());
    counts[item->truth_samples].push_back(item->truth_count);
  }
  for (std::size_t k = 0; k < kReportProfiles; ++k) {
    double sum = 0.0, variance = 0.0;
    for (const auto& [samples, some] : counts) {
      const NoiseFloor floor = noise_floor(spb[k], some, samples);
      const double weight = static_cast<double>(some.size());
      sum += weight * floor.mean;
      variance += weight * floor.sd * weight * floor.sd;
    }
    const double n = static_cast<double>(out.scored);
    out.noise[k] = {sum / n, std::sqrt(variance) / n};
  }
  return out;
}

MeanError average(std::span<const MeanError> cells) {
  const double n = static_cast<double>(cells.size());
  MeanError out;
  double variance = 0.0;
  for (const MeanError& cell : cells) {
    out.mean += cell.mean / n;
    variance += cell.error * cell.error;
  }
  out.error = std::sqrt(variance) / n;
  return out;
}

}  // namespace deeptail
