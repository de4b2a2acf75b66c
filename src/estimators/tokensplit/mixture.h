// Laws that particles are drawn from instead of the prior, and the exact weights that make up for it.
//
// The event's probability is sum_c share_c E_{q_c}[weight 1_event], weight = prior / sum_c share_c q_c, for
// any components q_c whose mixture gives every input of the prior a chance (docs/tokensplit.md). Each term
// is estimated by runs of its own, under its own component.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "inputs/planted_tables.h"

namespace deeptail {

// One law: tables like the prior's, with other chances, in which tokens may be planted.
struct Component {
  std::string name;
  double share = 1.0;  // of the mixture
  Distribution tables;
  std::optional<PlantList> plants = {};
};

class Mixture {
 public:
  // Shares sum to 1. Every component's tables hold the prior's tokens, no others.
  Mixture(const Distribution& prior, std::vector<Component> components);
  Mixture(const Mixture&) = delete;
  Mixture& operator=(const Mixture&) = delete;

  std::size_t size() const { return parts_.size(); }
  const Component& component(std::size_t c) const { return parts_[c].component; }
  const InputLaw& law(std::size_t c) const { return *parts_[c].law; }
  // tokens: [length] of an input of the prior.
  double log_weight(std::span<const TokenId> tokens) const;
  // The largest weight that an input can have, as far as component c alone bounds it: log of the largest
  // prior / q_c; infinite where q_c leaves inputs out.
  double log_largest_ratio(std::size_t c) const;

 private:
  // Of one position where a component differs from the prior.
  struct Ratios {
    std::size_t position;
    const std::vector<TokenId>* ids;  // of the prior's table
    std::vector<double> log_ratio;    // [ids]: component over prior
  };
  struct Part {
    Component component;
    std::unique_ptr<InputLaw> law;
    std::vector<Ratios> ratios;
    std::unordered_map<std::uint64_t, std::vector<std::uint32_t>>
        plants;                    // their numbers, by the first token
    std::vector<double> log_lift;  // [plants]: chance over that of the tables where it is planted
  };
  Part part_of(Component component) const;
  // Component over prior.
  double log_ratio(const Part& part, std::span<const TokenId> tokens) const;
  double log_planted_ratio(const Part& part, std::span<const TokenId> tokens) const;

  Distribution prior_;
  std::vector<Part> parts_;
};

}  // namespace deeptail
