// Tokens, pairs and triples of tokens planted over draws of the prior, for many targets at once: which, how often, and
// how much more often than by the prior an input is drawn so.
#pragma once

#include <compare>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "estimators/tokensplit/candidates.h"

namespace deeptail {

// Where tokens are planted: at the last free position, at the one before it (group 0), at any of those positions of a
// window before the last that share a table (the other groups), and at the third-last free position.
struct PlantSites {
  // The distribution must outlive it; it has two free positions or more.
  explicit PlantSites(const Distribution& prior);

  const Distribution& prior;
  std::size_t last = 0, third = 0;  // without a third free position that is the one before the last
  std::vector<ScanGroup> groups = {};
  std::vector<std::vector<double>> inverse = {};  // [tables][d_vocab]: 1 / prior, 0 for other tokens

  std::size_t before() const { return groups[0].positions[0]; }
  bool has_third() const { return third != before(); }
  double inverse_at(std::size_t position, TokenId token) const {
    return inverse[prior.positions[position]][static_cast<std::size_t>(token)];
  }
};

// What is planted, kNothing where there is nothing: at the last position, in a group, at the third-last (only where
// `other` is of group 0).
struct PlantedTokens {
  TokenId last = kNothing, other = kNothing, third = kNothing;
  std::uint32_t group = 0;
  friend auto operator<=>(const PlantedTokens&, const PlantedTokens&) = default;
};
// The log of the prior chance that an input holds it, about.
double log_prior_of(const PlantedTokens& tokens, const PlantSites& sites);

struct PlantChance {
  PlantedTokens tokens = {};
  double chance = 0.0;
};
// Of several lists, each with its share, one that is sorted and names everything once; its chances sum to 1.
using SharedLists = std::span<const std::pair<double, std::span<const PlantChance>>>;
std::vector<PlantChance> joined(SharedLists lists);

class PlantedLaw {
 public:
  // plants: distinct; chances sum to 1. The sites must outlive it.
  PlantedLaw(const PlantSites& sites, std::span<const PlantChance> plants);

  // Writes a plant over an input of the prior: [length]. which, where: uniform numbers.
  void plant(std::uint64_t which, std::uint64_t where, std::span<TokenId> input) const;
  // This law over the prior at an input: [length].
  double ratio(std::span<const TokenId> input) const;
  // Calls use(number of a plant, its part of the ratio over its chance) for the plants that the input may hold.
  template <class Use>
  void for_each_fit(std::span<const TokenId> input, Use use) const;

 private:
  static std::uint64_t key(const PlantedTokens& tokens);

  const PlantSites& sites_;
  std::vector<PlantedTokens> plants_;
  TokenTable chances_;          // of the numbers of plants, in place of token ids
  std::vector<double> chance_;  // [plants]: as they are drawn
  std::unordered_map<std::uint64_t, std::uint32_t> index_;
};

template <class Use>
void PlantedLaw::for_each_fit(std::span<const TokenId> input, Use use) const {
  const auto tell = [&](const PlantedTokens& tokens, double lift) {
    if (const auto found = index_.find(key(tokens)); found != index_.end()) use(found->second, lift);
  };
  const TokenId last = input[sites_.last];
  const double of_last = sites_.inverse_at(sites_.last, last);
  tell({.last = last}, of_last);
  for (std::uint32_t g = 0; g < sites_.groups.size(); ++g) {
    const auto& positions = sites_.groups[g].positions;
    for (const std::size_t position : positions) {
      const TokenId other = input[position];
      const double of_other = sites_.inverse_at(position, other) / static_cast<double>(positions.size());
      tell({.last = last, .other = other, .group = g}, of_last * of_other);
      tell({.other = other, .group = g}, of_other);
    }
  }
  if (!sites_.has_third()) return;
  const TokenId before = input[sites_.before()], third = input[sites_.third];
  tell({.last = last, .other = before, .third = third},
       of_last * sites_.inverse_at(sites_.before(), before) * sites_.inverse_at(sites_.third, third));
}

}  // namespace deeptail
