#include "estimators/tokensplit/mixture.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "deeptail/splitting.h"

namespace deeptail {

namespace {

const double kNever = -std::numeric_limits<double>::infinity();

std::uint64_t key_of(const PlantedToken& t) {
  return static_cast<std::uint64_t>(t.position) << 32 | static_cast<std::uint32_t>(t.token);
}

std::vector<double> log_ratios(const TokenTable& of, const TokenTable& prior) {
  std::vector<double> out;
  for (std::size_t i = 0; i < prior.size(); ++i)
    out.push_back(std::log(of.probability(i)) - std::log(prior.probability(i)));
  return out;
}

}  // namespace

Mixture::Mixture(const Distribution& prior, std::vector<Component> components) : prior_(prior) {
  for (Component& component : components) parts_.push_back(part_of(std::move(component)));
}

Mixture::Part Mixture::part_of(Component component) const {
  Part part{.component = std::move(component), .law = nullptr, .ratios = {}, .plants = {}, .log_lift = {}};
  const Component& c = part.component;
  for (std::size_t position = 0; position < prior_.length(); ++position) {
    const TokenTable& prior = prior_.table(position);
    std::vector<double> ratios = log_ratios(c.tables.table(position), prior);
    if (std::any_of(ratios.begin(), ratios.end(), [](double r) { return r != 0.0; }))
      part.ratios.push_back({position, &prior.ids(), std::move(ratios)});
  }
  if (!c.plants) {
    part.law = std::make_unique<TokenTables>(c.tables);
    return part;
  }
  for (std::uint32_t i = 0; i < c.plants->size(); ++i) {
    double log_lift = std::log(c.plants->chances.probability(i));
    for (const PlantedToken& t : c.plants->plants[i].tokens())
      log_lift -= c.tables.table(t.position).log_probability(t.token);
    part.log_lift.push_back(log_lift);
    part.plants[key_of(c.plants->plants[i].tokens().front())].push_back(i);
  }
  part.law = std::make_unique<PlantedTables>(c.tables, *c.plants);
  return part;
}

// Where a token is planted, the input's own chance of it does not count: so the plants that fit the input,
// each with its chance over that of the component's tables at the places that it covers.
double Mixture::log_planted_ratio(const Part& part, std::span<const TokenId> tokens) const {
  const auto fits = [&](const Plant& plant) {
    return std::all_of(plant.tokens().begin(), plant.tokens().end(),
                       [&](const PlantedToken& t) { return tokens[t.position] == t.token; });
  };
  double log_sum = kNever;
  for (std::uint32_t position = 0; position < tokens.size(); ++position) {
    const auto found = part.plants.find(key_of({position, tokens[position]}));
    if (found == part.plants.end()) continue;
    for (const std::uint32_t i : found->second)
      if (fits(part.component.plants->plants[i])) log_sum = log_add(log_sum, part.log_lift[i]);
  }
  return log_sum;
}

double Mixture::log_ratio(const Part& part, std::span<const TokenId> tokens) const {
  double sum = part.component.plants ? log_planted_ratio(part, tokens) : 0.0;
  if (sum == kNever) return sum;
  for (const Ratios& at : part.ratios) {
    const auto found = std::lower_bound(at.ids->begin(), at.ids->end(), tokens[at.position]);
    sum += at.log_ratio[static_cast<std::size_t>(found - at.ids->begin())];
  }
  return sum;
}

double Mixture::log_weight(std::span<const TokenId> tokens) const {
  double log_sum = kNever;
  for (const Part& part : parts_)
    log_sum = log_add(log_sum, std::log(part.component.share) + log_ratio(part, tokens));
  return -log_sum;
}

double Mixture::log_largest_ratio(std::size_t c) const {
  const Part& part = parts_[c];
  if (part.component.plants) return -kNever;
  double sum = 0.0;
  for (const Ratios& at : part.ratios) sum -= *std::min_element(at.log_ratio.begin(), at.log_ratio.end());
  return sum;
}

}  // namespace deeptail
