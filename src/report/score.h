// Scores of the estimates of one setting on one model and distribution.
#pragma once

#include <algorithm>
#include <cmath>
#include <map>
#include <span>

#include "deeptail/report.h"

namespace deeptail {

// Has the item a truth that can be scored?
inline bool scorable(const RunItem& item) {
  return item.truth_count > 0 && item.truth_count < item.truth_samples;
}

// Importance sampling may answer with more than 1, which no loss is defined for.
inline double estimate_of(const RunItem& item) { return std::min(1.0, std::exp(item.log_p)); }

// `items`: those of one cell, sorted by target. Several estimates of one target (replicas) count as one
// target whose loss is their mean.
Score score_items(std::span<const RunItem* const> items,
                  const std::array<SpbParameters, kReportProfiles>& spb, ThreadPool& pool);

// SPB losses of each target that is scored, under the profiles; replicas averaged.
using TargetLosses = std::map<std::vector<TokenId>, std::array<double, kReportProfiles>>;
TargetLosses target_losses(std::span<const RunItem* const> items,
                           const std::array<SpbParameters, kReportProfiles>& spb);

// One target per item.
ReportPair score_pair(std::span<const RunItem* const> targets,
                      const std::array<SpbParameters, kReportProfiles>& spb);

}  // namespace deeptail
