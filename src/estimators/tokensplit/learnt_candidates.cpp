// What may be planted, from what hits teach.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "estimators/tokensplit/learn.h"

namespace deeptail {

namespace {

// That are tried; the latter of each kind.
constexpr std::size_t kMostPlants = 128, kMostFurther = 48;

using Shares = std::map<Plant, double>;

std::vector<Plant> largest_of(const Shares& found, std::size_t most) {
  std::vector<std::pair<double, Plant>> order;
  for (const auto& [plant, share] : found) order.emplace_back(-share, plant);
  std::sort(order.begin(), order.end());
  if (order.size() > most) order.resize(most);
  std::vector<Plant> out;
  for (const auto& [share, plant] : order) out.push_back(plant);
  return out;
}

// Choices of its tokens: those with the largest losses, and all others. Hits of few ancestors agree on a token that the
// event does not need, and lose most without it.
void add_choices(std::span<const PlantedToken> tokens, double share, Shares& largest, Shares& others) {
  for (std::size_t choice = 1; choice < std::size_t{1} << tokens.size(); ++choice) {
    std::vector<PlantedToken> chosen;
    for (std::size_t i = 0; i < tokens.size(); ++i)
      if (choice >> i & 1) chosen.push_back(tokens[i]);
    const bool first_ones = (choice & (choice + 1)) == 0;
    (first_ones ? largest : others)[Plant(chosen)] += share;
  }
}

// Tokens of different hits, two by two: each may have helped a little where the event needs both.
Shares crossed(const Shares& of_tokens) {
  constexpr std::size_t kTokens = 16;
  const std::vector<Plant> most = largest_of(of_tokens, kTokens);
  Shares pairs;
  for (std::size_t i = 0; i < most.size(); ++i)
    for (std::size_t j = 0; j < i; ++j) {
      const PlantedToken a = most[i].tokens().front(), b = most[j].tokens().front();
      if (a.position != b.position) pairs[Plant({a, b})] = of_tokens.at(most[i]) * of_tokens.at(most[j]);
    }
  return pairs;
}

}  // namespace

PlantCandidates candidates_of(std::span<const Lesson> lessons, std::size_t but_for) {
  double shares = 0.0, log_p = -std::numeric_limits<double>::infinity();
  for (const Lesson& lesson : lessons) {
    if (lesson.run == but_for) continue;
    shares += lesson.share;
    log_p = log_add(log_p, lesson.log_part);
  }
  Shares largest, others, of_tokens;
  for (const Lesson& lesson : lessons) {
    if (lesson.run == but_for) continue;
    const double share = lesson.share / shares + std::exp(lesson.log_part - log_p);
    add_choices(lesson.tokens, share, largest, others);
    for (const PlantedToken& token : lesson.tokens) of_tokens[Plant({token})] += share;
  }
  PlantCandidates out{.likely = largest_of(largest, kMostPlants), .further = {}};
  std::set<Plant> taken(out.likely.begin(), out.likely.end());
  for (const Shares& found : {others, crossed(of_tokens)})
    for (const Plant& plant : largest_of(found, kMostFurther))
      if (taken.insert(plant).second) out.further.push_back(plant);
  return out;
}

std::vector<Plant> PlantCandidates::all() const {
  std::vector<Plant> out = likely;
  out.insert(out.end(), further.begin(), further.end());
  return out;
}

}  // namespace deeptail
