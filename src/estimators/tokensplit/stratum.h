// A law under which an estimate runs, and its runs.
#pragma once

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "estimators/tokensplit/pilot.h"
#include "estimators/tokensplit/summary.h"

namespace deeptail {

template <class Place>
struct Stratum {
  Place place;
  double share = 1.0;  // of the mixture
  std::uint64_t seed = 0;
  PilotResult pilot = {};
  Replicas replicas = {};
};

// Budgets of the replicas, with what the pilots took: half alike, the rest in proportion to the pilots' standard
// deviations. left: of the whole budget; unit: flops of a forward pass.
template <class Place>
std::vector<double> replica_budgets(std::span<const Stratum<Place>> strata, double left, double unit) {
  std::vector<double> spread;
  double sum = 0.0;
  for (const Stratum<Place>& s : strata) {
    const double variance = std::max(s.pilot.run.genealogy_variance, s.pilot.run.level_variance);
    spread.push_back(s.share * std::exp(s.pilot.run.log_p) * std::sqrt(variance));
    sum += spread.back();
  }
  const auto n = static_cast<double>(strata.size());
  std::vector<double> out;
  for (std::size_t c = 0; c < strata.size(); ++c) {
    const double share = sum > 0.0 ? 0.5 / n + 0.5 * spread[c] / sum : 1.0 / n;
    out.push_back(share * left + strata[c].pilot.work.flops / unit);
  }
  return out;
}

}  // namespace deeptail
