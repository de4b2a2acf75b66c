// Plants of all kinds in a law, for comparisons.
#pragma once

#include <algorithm>
#include <vector>

#include "inputs/planted_tables.h"

namespace deeptail {

// About n plants with unequal chances: a last token, another one, both, some with a third; the others at several
// positions.
inline PlantList some_plants(const Distribution& dist, std::size_t n) {
  const std::vector<std::size_t> free = free_positions(dist);
  PlantList list{.plants = {}, .chances = TokenTable("one", {0}, {1.0}, "plants")};
  const auto token = [&](std::size_t position, std::size_t i) {
    const std::vector<TokenId>& ids = dist.table(position).ids();
    return ids[i % ids.size()];
  };
  std::vector<TokenId> numbers;
  std::vector<double> chances;
  double sum = 0.0;
  for (std::size_t i = 0; i < n; ++i) {
    // Positions in turn; tokens anew once all of them had their turn.
    const std::size_t others = free.size() - 1, position = free[i / 3 % others], round = i / 3 / others;
    std::vector<PlantedToken> tokens;
    const auto put = [&](std::size_t at, std::size_t which) {
      tokens.push_back({static_cast<std::uint32_t>(at), token(at, which)});
    };
    if (i % 3 != 1) put(free.back(), i % 3 == 0 ? i / 3 : round);
    if (i % 3 != 0) put(position, round);
    if (i % 5 == 2 && others > 2) put(free[(i / 3 + 1) % others], round);
    const Plant plant{std::span<const PlantedToken>(tokens)};
    if (std::find(list.plants.begin(), list.plants.end(), plant) != list.plants.end()) continue;
    numbers.push_back(static_cast<TokenId>(list.plants.size()));
    list.plants.push_back(plant);
    sum += chances.emplace_back(1.0 / static_cast<double>(2 + i % 7));
  }
  for (double& chance : chances) chance /= sum;
  list.chances = TokenTable("plants", std::move(numbers), std::move(chances), "plants");
  return list;
}

}  // namespace deeptail
