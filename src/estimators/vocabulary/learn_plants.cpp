#include "estimators/vocabulary/learn_plants.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>

namespace deeptail {

namespace {

constexpr std::size_t kFewestLearnt = 4;  // hits
constexpr std::size_t kEmRounds = 8;
constexpr double kLearntPart =
    0.6;  // the given list keeps the rest: what it knows and the draws did not see is not lost

// A token in a group that hits hold more often than inputs of the prior.
struct Enriched {
  TokenId token;
  std::uint32_t group;
  friend auto operator<=>(const Enriched&, const Enriched&) = default;
};

std::set<Enriched> enriched_tokens(const PlantSites& sites, std::span<const SharedHit> hits, double sum) {
  constexpr double kPart = 0.05, kTimes = 3.0;
  std::map<Enriched, double> parts;
  for (const SharedHit& hit : hits) {
    std::set<Enriched> here;
    for (std::uint32_t g = 1; g < sites.groups.size(); ++g)
      for (const std::size_t position : sites.groups[g].positions) here.insert({hit.tokens[position], g});
    for (const Enriched& e : here) parts[e] += hit.weight / sum;
  }
  std::set<Enriched> out;
  for (const auto& [e, part] : parts) {
    const auto& positions = sites.groups[e.group].positions;
    const double usual = static_cast<double>(positions.size()) / sites.inverse_at(positions[0], e.token);
    if (part >= kPart && part >= kTimes * usual) out.insert(e);
  }
  return out;
}

// What the hits hold, and the list may not have thought of.
std::set<PlantedTokens> held_by(const PlantSites& sites, std::span<const SharedHit> hits, double sum) {
  const std::set<Enriched> enriched = enriched_tokens(sites, hits, sum);
  std::set<PlantedTokens> out;
  for (const SharedHit& hit : hits) {
    out.insert({.last = hit.last});
    out.insert({.last = hit.last, .other = hit.before});
    if (sites.has_third()) out.insert({.last = hit.last, .other = hit.before, .third = hit.third});
    for (std::uint32_t g = 1; g < sites.groups.size(); ++g)
      for (const std::size_t position : sites.groups[g].positions)
        if (const TokenId token = hit.tokens[position]; enriched.contains({token, g})) {
          out.insert({.last = hit.last, .other = token, .group = g});
          out.insert({.other = token, .group = g});
        }
  }
  return out;
}

// Expectation and maximisation, where no hit speaks for itself: each is shared out between the plants that may have
// made it by what the others say of these. So a triple that one hit alone holds counts for nothing.
class PlantFit {
 public:
  PlantFit(const PlantSites& sites, std::vector<PlantChance> start, std::span<const SharedHit> hits,
           double sum)
      : plants_(std::move(start)), next_(plants_.size()) {
    const PlantedLaw law(sites, plants_);
    for (const SharedHit& hit : hits) {
      Shared& shared = shared_.emplace_back(Shared{.part = hit.weight / sum});
      law.for_each_fit(hit.tokens, [&](std::uint32_t i, double lift) {
        shared.fits.push_back({i, lift, 0.0});
      });
    }
  }

  std::vector<PlantChance> run() {
    for (std::size_t round = 0; round < kEmRounds; ++round) {
      std::fill(next_.begin(), next_.end(), 0.0);
      for (Shared& hit : shared_) share_out(hit);
      for (std::size_t i = 0; i < plants_.size(); ++i) plants_[i].chance = next_[i];
    }
    return plants_;
  }

 private:
  struct FitOf {
    std::uint32_t plant;
    double lift, given;  // given: what the hit gave to its chance in the last round
  };
  struct Shared {
    double part;
    std::vector<FitOf> fits = {};
  };
  void share_out(Shared& hit) {
    constexpr double kLittle = 1e-12;
    double all = 0.0;
    const auto weight = [&](const FitOf& f) {
      return f.lift * (std::max(0.0, plants_[f.plant].chance - f.given) + kLittle);
    };
    for (const FitOf& f : hit.fits) all += weight(f);
    for (FitOf& f : hit.fits) {
      f.given = hit.part * weight(f) / all;
      next_[f.plant] += f.given;
    }
  }

  std::vector<PlantChance> plants_;
  std::vector<double> next_;
  std::vector<Shared> shared_;
};

}  // namespace

std::vector<PlantChance> learnt_plants(const PlantSites& sites, std::span<const PlantChance> given,
                                       std::span<const SharedHit> hits) {
  if (hits.size() < kFewestLearnt) return {given.begin(), given.end()};
  double sum = 0.0;
  for (const SharedHit& hit : hits) sum += hit.weight;
  std::vector<PlantChance> own;
  const std::set<PlantedTokens> held = held_by(sites, hits, sum);
  for (const PlantedTokens& tokens : held) own.push_back({tokens, 1.0 / static_cast<double>(held.size())});
  using Two = std::array<std::pair<double, std::span<const PlantChance>>, 2>;
  const std::vector<PlantChance> learnt =
      PlantFit(sites, joined(Two{{{0.5, given}, {0.5, own}}}), hits, sum).run();
  return joined(Two{{{1.0 - kLearntPart, given}, {kLearntPart, learnt}}});
}

}  // namespace deeptail
