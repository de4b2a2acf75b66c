// What of a population has the event, each with its part of the run's answer.
#pragma once

#include <cmath>
#include <span>
#include <vector>

#include "deeptail/splitting.h"
#include "estimators/tokensplit/triggers.h"

namespace deeptail {

// Those at or above the level that the population has just been held to. log_reach: of that level.
template <class Population>
void keep_hits(const Population& population, std::span<const double> scores, double level, double log_reach,
               TriggerPool& triggers) {
  std::vector<std::uint32_t> hits;
  for (std::size_t i = 0; i < scores.size(); ++i)
    if (scores[i] >= level) hits.push_back(static_cast<std::uint32_t>(i));
  std::vector<double> log_parts(hits.size());
  population.log_payoffs(hits, log_parts);
  for (double& part : log_parts) part += log_reach - std::log(static_cast<double>(hits.size()));
  triggers.add(population.inputs(), population.answers(), hits, scores, log_parts);
}

}  // namespace deeptail
