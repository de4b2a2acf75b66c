#include "estimators/tokensplit/mixture.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "deeptail/splitting.h"

namespace deeptail {

namespace {

const double kNever = -std::numeric_limits<double>::infinity();

bool in_tuple(const Component& component, std::size_t position) {
  return component.tuple && std::binary_search(component.tuple->positions.begin(),
                                               component.tuple->positions.end(), position);
}

std::vector<double> log_ratios(const TokenTable& of, const TokenTable& prior) {
  std::vector<double> out;
  for (std::size_t i = 0; i < prior.size(); ++i)
    out.push_back(std::log(of.probability(i)) - std::log(prior.probability(i)));
  return out;
}

std::map<std::vector<TokenId>, double> tuple_ratios(const TupleTable& tuple, const Distribution& prior) {
  std::map<std::vector<TokenId>, double> out;
  for (std::size_t i = 0; i < tuple.size(); ++i) {
    const auto tokens = tuple.tuple(i);
    double log_ratio = std::log(tuple.chances.probability(i));
    for (std::size_t k = 0; k < tuple.width(); ++k)
      log_ratio -= prior.table(tuple.positions[k]).log_probability(tokens[k]);
    out.emplace(std::vector<TokenId>(tokens.begin(), tokens.end()), log_ratio);
  }
  return out;
}

}  // namespace

Mixture::Mixture(const Distribution& prior, std::vector<Component> components) : prior_(prior) {
  for (Component& component : components) parts_.push_back(part_of(std::move(component)));
}

Mixture::Part Mixture::part_of(Component component) const {
  Part part{.component = std::move(component), .law = nullptr, .ratios = {}, .tuples = {}};
  const Component& c = part.component;
  for (std::size_t position = 0; position < prior_.length(); ++position) {
    if (in_tuple(c, position)) continue;
    const TokenTable& prior = prior_.table(position);
    std::vector<double> ratios = log_ratios(c.tables.table(position), prior);
    if (std::any_of(ratios.begin(), ratios.end(), [](double r) { return r != 0.0; }))
      part.ratios.push_back({position, &prior.ids(), std::move(ratios)});
  }
  if (c.tuple) {
    part.tuples = tuple_ratios(*c.tuple, prior_);
    part.law = std::make_unique<JointTables>(c.tables, *c.tuple);
  } else {
    part.law = std::make_unique<TokenTables>(c.tables);
  }
  return part;
}

double Mixture::log_ratio(const Part& part, std::span<const TokenId> tokens) {
  double sum = 0.0;
  if (part.component.tuple) {
    std::vector<TokenId> key;
    for (const std::size_t position : part.component.tuple->positions) key.push_back(tokens[position]);
    const auto found = part.tuples.find(key);
    if (found == part.tuples.end()) return kNever;
    sum = found->second;
  }
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
  if (part.component.tuple) return -kNever;
  double sum = 0.0;
  for (const Ratios& at : part.ratios) sum -= *std::min_element(at.log_ratio.begin(), at.log_ratio.end());
  return sum;
}

}  // namespace deeptail
