#include "estimators/tokensplit/candidates.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <tuple>

#include "core/statistics.h"

namespace deeptail {

namespace {

constexpr double kMoreSpread = 1.3;  // scores have heavier tails than normal ones

bool promises_more(const Candidate& a, const Candidate& b) { return a.log_promise > b.log_promise; }

double median_variance(std::span<const Candidate> candidates) {
  std::vector<double> variances;
  for (const Candidate& c : candidates) variances.push_back(c.variance);
  const auto middle = variances.begin() + static_cast<std::ptrdiff_t>(variances.size() / 2);
  std::nth_element(variances.begin(), middle, variances.end());
  return *middle;
}

}  // namespace

void Candidate::assess(double variance_of_scores) {
  constexpr double kFarthest = 40.0;
  const double z =
      variance_of_scores > 0.0 ? mean / std::sqrt(variance_of_scores) : (mean < 0.0 ? -kFarthest : kFarthest);
  const auto log_tail = [&](double at) { return log_normal_tail(-std::clamp(at, -kFarthest, kFarthest)); };
  log_worth = log_prior + 0.5 * log_tail(z / kMoreSpread);
  log_promise = 0.5 * (log_prior + log_tail(z));
}

void judge(std::span<Candidate> candidates, std::size_t contexts) {
  if (candidates.empty()) return;
  const double median = median_variance(candidates), n = static_cast<double>(contexts);
  for (Candidate& c : candidates) c.assess(((n - 1.0) * c.variance + 4.0 * median) / (n + 3.0));
}

void keep_best(std::vector<Candidate>& candidates, std::size_t n) {
  std::stable_sort(candidates.begin(), candidates.end(), promises_more);
  if (candidates.size() > n) candidates.resize(n);
}

std::vector<Candidate> promising_pairs(std::span<const Candidate> lasts, std::span<const Candidate> others,
                                       double mean_score, std::size_t n) {
  std::vector<Candidate> pairs;
  if (n == 0) return pairs;
  const double variance = 0.5 * (median_variance(lasts) + median_variance(others));
  for (const Candidate& last : lasts) {
    for (const Candidate& other : others) {
      Candidate pair{.last = last.last,
                     .other = other.other,
                     .group = other.group,
                     .log_prior = last.log_prior + other.log_prior,
                     .mean = last.mean + other.mean - mean_score};
      pair.assess(variance);
      pairs.push_back(pair);
    }
    if (pairs.size() > 4 * n + others.size()) {  // keeps memory bounded
      const auto end = pairs.begin() + static_cast<std::ptrdiff_t>(n);
      std::nth_element(pairs.begin(), end, pairs.end(), promises_more);
      pairs.resize(n);
    }
  }
  keep_best(pairs, n);
  return pairs;
}

namespace {

// Chances in the order of the plants.
PlantList listed(std::vector<Plant> plants, std::vector<double> chances) {
  std::vector<TokenId> numbers(plants.size());
  std::iota(numbers.begin(), numbers.end(), TokenId{0});
  return {.plants = std::move(plants),
          .chances = TokenTable("plants", std::move(numbers), std::move(chances), "plants")};
}

constexpr double kSmallestWorth = 1e-9;  // of the best: leaves whole units of 2^-64 to all

}  // namespace

PlantList plants_of(std::span<const Candidate> candidates, std::span<const ScanGroup> groups,
                    std::size_t last_position) {
  double top = -std::numeric_limits<double>::infinity(), sum = 0.0;
  for (const Candidate& c : candidates) top = std::max(top, c.log_worth);
  std::map<std::tuple<TokenId, TokenId, std::uint32_t>, double> worths;  // last, other, its position
  for (const Candidate& c : candidates) {
    const double worth = std::exp(c.log_worth - top);
    if (worth < kSmallestWorth) continue;
    sum += worth;
    if (c.other == kNothing) {
      worths[{c.last, kNothing, 0}] += worth;
      continue;
    }
    const auto& positions = groups[c.group].positions;
    for (const std::size_t position : positions)
      worths[{c.last, c.other, static_cast<std::uint32_t>(position)}] +=
          worth / static_cast<double>(positions.size());
  }
  std::vector<Plant> plants;
  std::vector<double> chances;
  for (const auto& [key, worth] : worths) {
    const auto& [last, other, position] = key;
    std::vector<PlantedToken> tokens;
    if (other != kNothing) tokens.push_back({position, other});
    if (last != kNothing) tokens.push_back({static_cast<std::uint32_t>(last_position), last});
    plants.emplace_back(tokens);
    chances.push_back(worth / sum);
  }
  return listed(std::move(plants), std::move(chances));
}

PlantList plants_by(const PlantWorths& worths) {
  double top = 0.0, sum = 0.0;
  for (const auto& [plant, worth] : worths) top = std::max(top, worth);
  for (const auto& [plant, worth] : worths) sum += worth < kSmallestWorth * top ? 0.0 : worth;
  std::vector<Plant> plants;
  std::vector<double> chances;
  for (const auto& [plant, worth] : worths) {
    if (worth < kSmallestWorth * top) continue;
    plants.push_back(plant);
    chances.push_back(worth / sum);
  }
  return listed(std::move(plants), std::move(chances));
}

}  // namespace deeptail
