// Plants learnt from inputs that have the event: the tokens that they would lose it without.
//
// A scan tries tokens and pairs where they usually decide. What it does not think of (three tokens together, two
// in the middle of an input, a pair that only tells near the event) an exploring run may still find; planted,
// every replica holds it. Whatever is not found costs variance, never the estimate's mean.
#pragma once

#include <limits>
#include <map>
#include <set>

#include "estimators/tokensplit/candidates.h"
#include "estimators/tokensplit/meter.h"
#include "estimators/tokensplit/place.h"
#include "estimators/tokensplit/triggers.h"

namespace deeptail {

// The tokens that a hit would lose the event without, its largest loss first, and what is known of its part in the event.
struct Lesson {
  std::vector<PlantedToken> tokens;
  std::size_t run;  // that found it
  double share;     // of what its run found
  double log_part;  // its run's answer times that share
};
struct Lessons {
  std::vector<Lesson> all = {};
  Work work = {};
};
inline constexpr std::size_t kNoRun = std::numeric_limits<std::size_t>::max();

// place: under the prior. runs: what independent runs found, under any laws, each with its parts of p. flops: what it
// may take, about. A run's lessons do not depend on other runs.
template <class Place>
Lessons lessons_of(const Place& place, std::span<const TriggerPool> runs, double flops, std::uint64_t seed,
                   ThreadPool& pool);

// What may be planted.
struct PlantCandidates {
  std::vector<Plant> likely;   // tokens of the lessons, alone and together, that have most of the event
  std::vector<Plant> further;  // other choices of them, and pairs of tokens of different lessons
  std::vector<Plant> all() const;
};
// Of all runs but one.
PlantCandidates candidates_of(std::span<const Lesson> lessons, std::size_t but_for = kNoRun);

// How often inputs of the prior have the event where something is planted; 0 where it does not lead near it.
struct PlantChances {
  std::map<Plant, double> of = {};
  std::size_t tries = 0;  // of each
  Work work = {};
};
// flops: what it may take, about.
template <class Place>
PlantChances chances_with(const Place& place, const std::set<Plant>& plants, double flops, std::uint64_t seed,
                          ThreadPool& pool);

// Those that lead to the event, or, if they are likely and more than one token, so near it that a few levels do. What
// needs more than is planted is left to other laws: these find their way to it, a law that planted it would not.
PlantWorths worths_of(const PlantCandidates& candidates, const PlantChances& chances,
                      const Distribution& prior);

}  // namespace deeptail
