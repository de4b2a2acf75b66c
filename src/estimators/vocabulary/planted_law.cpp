#include "estimators/vocabulary/planted_law.h"

#include <algorithm>
#include <cmath>

#include "core/random.h"

namespace deeptail {

namespace {

constexpr std::size_t kPlantWindow = 15;  // free positions before the last, at most, where tokens are planted

TokenTable table_of_chances(std::span<const PlantChance> plants) {
  std::vector<TokenId> numbers;
  std::vector<double> chances;
  for (const PlantChance& p : plants) {
    numbers.push_back(static_cast<TokenId>(numbers.size()));
    chances.push_back(p.chance);
  }
  return {"plants", std::move(numbers), std::move(chances), "plants"};
}

// [0, n), each alike but for 2^-53.
std::size_t one_of(std::size_t n, std::uint64_t u) {
  return static_cast<std::size_t>(unit_double(u) * static_cast<double>(n));
}

}  // namespace

PlantSites::PlantSites(const Distribution& law) : prior(law) {
  std::vector<std::size_t> free = free_positions(prior);
  last = free.back();
  free.pop_back();
  third = free[free.size() - std::min<std::size_t>(2, free.size())];
  groups.push_back({{free.back()}, &prior.table(free.back())});
  for (std::size_t i = free.size() - std::min(kPlantWindow, free.size()); i < free.size(); ++i) {
    const TokenTable* table = &prior.table(free[i]);
    const auto same =
        std::find_if(groups.begin() + 1, groups.end(), [&](const ScanGroup& g) { return g.table == table; });
    if (same == groups.end())
      groups.push_back({{free[i]}, table});
    else
      same->positions.push_back(free[i]);
  }
  for (const TokenTable& table : prior.tables) {
    std::vector<double>& of_table = inverse.emplace_back(prior.d_vocab, 0.0);
    for (std::size_t i = 0; i < table.size(); ++i)
      of_table[static_cast<std::size_t>(table.ids()[i])] = 1.0 / table.probability(i);
  }
}

double log_prior_of(const PlantedTokens& tokens, const PlantSites& sites) {
  double log_prior = 0.0;
  if (tokens.last != kNothing) log_prior -= std::log(sites.inverse_at(sites.last, tokens.last));
  if (tokens.third != kNothing) log_prior -= std::log(sites.inverse_at(sites.third, tokens.third));
  if (tokens.other != kNothing) {
    const auto& positions = sites.groups[tokens.group].positions;
    log_prior +=
        std::log(static_cast<double>(positions.size()) / sites.inverse_at(positions[0], tokens.other));
  }
  return log_prior;
}

std::vector<PlantChance> joined(SharedLists lists) {
  std::vector<PlantChance> all, out;
  for (const auto& [share, list] : lists)
    for (const PlantChance& p : list) all.push_back({p.tokens, share * p.chance});
  std::stable_sort(all.begin(), all.end(),
                   [](const PlantChance& a, const PlantChance& b) { return a.tokens < b.tokens; });
  double sum = 0.0;
  for (const PlantChance& p : all) {
    if (out.empty() || out.back().tokens != p.tokens) out.push_back({p.tokens, 0.0});
    out.back().chance += p.chance;
    sum += p.chance;
  }
  constexpr double kSmallest = 1e-10;  // leaves whole units of 2^-64 to all
  std::erase_if(out, [&](const PlantChance& p) { return p.chance < kSmallest * sum; });
  sum = 0.0;
  for (const PlantChance& p : out) sum += p.chance;
  for (PlantChance& p : out) p.chance /= sum;
  return out;
}

PlantedLaw::PlantedLaw(const PlantSites& sites, std::span<const PlantChance> plants)
    : sites_(sites), chances_(table_of_chances(plants)) {
  for (std::uint32_t i = 0; i < plants.size(); ++i) {
    plants_.push_back(plants[i].tokens);
    chance_.push_back(chances_.probability(i));
    index_.emplace(key(plants[i].tokens), i);
  }
}

// Room for 2^20 tokens and 16 groups, one for each position of the window and the one before the last.
std::uint64_t PlantedLaw::key(const PlantedTokens& tokens) {
  constexpr int kTokenBits = 20, kGroupBits = 4;
  std::uint64_t key = 0;
  for (const TokenId token : {tokens.last, tokens.other, tokens.third})
    key = key << kTokenBits | static_cast<std::uint64_t>(token + 1);
  return key << kGroupBits | (tokens.group & 15);
}

void PlantedLaw::plant(std::uint64_t which, std::uint64_t where, std::span<TokenId> input) const {
  const PlantedTokens& tokens = plants_[static_cast<std::size_t>(chances_.draw(which))];
  if (tokens.last != kNothing) input[sites_.last] = tokens.last;
  if (tokens.third != kNothing) input[sites_.third] = tokens.third;
  if (tokens.other == kNothing) return;
  const auto& positions = sites_.groups[tokens.group].positions;
  input[positions[one_of(positions.size(), where)]] = tokens.other;
}

double PlantedLaw::ratio(std::span<const TokenId> input) const {
  double sum = 0.0;
  for_each_fit(input, [&](std::uint32_t i, double lift) { sum += chance_[i] * lift; });
  return sum;
}

}  // namespace deeptail
