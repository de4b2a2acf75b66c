#include "estimators/tokensplit/strata.h"

#include <algorithm>
#include <array>
#include <map>

namespace deeptail {

namespace {

// Shares of the uniform law: at the last free position, the one before, ..., and at all others. Chosen on
// hex and english of dt-1l and on made-up problems (tests/statistical/modes).
constexpr std::array<double, 3> kUniformLast = {0.3, 0.15, 0.15};
constexpr double kUniform = 0.02;
constexpr double kPlantedShare = 0.5;
constexpr double kWithLearnt = 0.4;  // of the flattened and of the planted law, beside a learnt one

TokenTable mixed(const TokenTable& table, double uniform) {
  std::vector<double> probabilities;
  for (std::size_t i = 0; i < table.size(); ++i)
    probabilities.push_back((1.0 - uniform) * table.probability(i) +
                            uniform / static_cast<double>(table.size()));
  return {table.name(), table.ids(), std::move(probabilities), table.name()};
}

// uniform: [length], a share for each position.
Distribution mixed(const Distribution& prior, const std::vector<double>& uniform) {
  Distribution out = prior;
  std::map<std::pair<std::size_t, double>, std::size_t> made;
  for (std::size_t position = 0; position < prior.length(); ++position) {
    if (prior.table(position).size() < 2 || uniform[position] == 0.0) continue;
    const auto [at, is_new] =
        made.emplace(std::pair(prior.positions[position], uniform[position]), out.tables.size());
    if (is_new) out.tables.push_back(mixed(prior.table(position), uniform[position]));
    out.positions[position] = at->second;
  }
  return out;
}

}  // namespace

Distribution flattened(const Distribution& prior) {
  std::vector<double> uniform(prior.length(), kUniform);
  const std::vector<std::size_t> free = free_positions(prior);
  for (std::size_t i = 0; i < std::min(free.size(), kUniformLast.size()); ++i)
    uniform[free[free.size() - 1 - i]] = kUniformLast[i];
  return mixed(prior, uniform);
}

std::unique_ptr<const Mixture> tilted(const Distribution& prior, std::optional<PlantList> plants) {
  std::vector<Component> components;
  components.push_back(
      {.name = "flattened", .share = plants ? 1.0 - kPlantedShare : 1.0, .tables = flattened(prior)});
  if (plants)
    components.push_back(
        {.name = "planted", .share = kPlantedShare, .tables = prior, .plants = std::move(plants)});
  return std::make_unique<const Mixture>(prior, std::move(components));
}

std::unique_ptr<const Mixture> tilted(const Distribution& prior, PlantList scanned,
                                      const PlantWorths& learnt) {
  if (learnt.empty()) return tilted(prior, std::optional(std::move(scanned)));
  std::vector<Component> components;
  components.push_back({.name = "flattened", .share = kWithLearnt, .tables = flattened(prior)});
  components.push_back(
      {.name = "planted", .share = kWithLearnt, .tables = prior, .plants = std::move(scanned)});
  components.push_back(
      {.name = "learnt", .share = 1.0 - 2.0 * kWithLearnt, .tables = prior, .plants = plants_by(learnt)});
  return std::make_unique<const Mixture>(prior, std::move(components));
}

}  // namespace deeptail
