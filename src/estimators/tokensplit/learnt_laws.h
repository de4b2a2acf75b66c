// A third law to run under: what the replicas found, planted; for each of them what the others found.
//
// So the weights of replica r, in which its own runs under the first laws are counted anew, do not depend on these
// runs, and its answer, their sum and a run under its third law, has p as its mean.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "estimators/tokensplit/learn.h"
#include "estimators/tokensplit/near_hits.h"
#include "estimators/tokensplit/strata.h"
#include "estimators/tokensplit/stratum.h"

namespace deeptail {

struct LearntLaws {
  std::vector<std::unique_ptr<const Mixture>> but_for;  // [replicas]; those that learnt nothing have two laws
  std::unique_ptr<const Mixture> all;                   // of all that was found
  Work work = {};

  static bool learnt(const Mixture& mixture) { return mixture.size() > kLearntLaw; }
  // One with a third law, for its levels; null where there is none.
  const Mixture* any() const {
    if (learnt(*all)) return all.get();
    for (const auto& mixture : but_for)
      if (learnt(*mixture)) return mixture.get();
    return nullptr;
  }
};

// What each replica found, under all laws: [replicas].
template <class Place>
std::vector<TriggerPool> found_by(std::span<const Stratum<Place>> strata) {
  std::vector<TriggerPool> found(strata.front().replicas.runs.size());
  for (const Stratum<Place>& s : strata)
    for (std::size_t r = 0; r < found.size(); ++r) {
      TriggerPool hits = s.replicas.triggers[r];
      hits.scale(std::log(s.share));
      found[r].append(hits);
    }
  return found;
}

// How fast log Pr[margin >= m] falls per unit of m, over a run's levels after the first.
inline double steepness_of(const SplittingRun& run) {
  const std::vector<Level>& levels = run.levels;
  if (levels.size() < 3) return 0.0;
  double log_fall = 0.0;
  for (std::size_t k = 1; k < levels.size(); ++k) log_fall -= std::log(levels[k].survive_fraction);
  const double width = levels.back().level - levels.front().level;
  return width > 0.0 && std::isfinite(log_fall) ? log_fall / width : 0.0;
}

// What it may take, about, in flops.
struct LearningBudget {
  double lessons, near_hits,
      tries;  // to look at hits; for tokens tried in the pilots' hits; for what is planted
};

// strata: with their replicas; scanned: what the second one plants.
template <class Place>
LearntLaws learnt_laws(const Place& place, std::span<const Stratum<Place>> strata, const PlantList& scanned,
                       const LearningBudget& flops, std::uint64_t seed, ThreadPool& pool) {
  std::vector<TriggerPool> found = found_by(strata);
  const std::size_t replicas = found.size();
  for (const Stratum<Place>& s : strata) found.push_back(s.pilot.hits);
  Work near_work;
  for (const Stratum<Place>& s : strata) {
    NearHits near = near_hits(place, s.pilot.hits, steepness_of(s.pilot.run),
                              flops.near_hits / static_cast<double>(strata.size()), pool);
    near_work += near.work;
    found.push_back(std::move(near.hits));
  }
  const Lessons lessons = lessons_of(place, found, flops.lessons, derived_seed(seed, 0), pool);
  std::vector<PlantCandidates> candidates;  // [replicas], then of all
  std::set<Plant> plants;
  for (std::size_t r = 0; r <= replicas; ++r) {
    candidates.push_back(candidates_of(lessons.all, r < replicas ? r : kNoRun));
    for (const Plant& plant : candidates.back().all()) plants.insert(plant);
  }
  const PlantChances chances = chances_with(place, plants, flops.tries, derived_seed(seed, 1), pool);
  const Distribution& prior = *place.problem.law.tables();
  LearntLaws out;
  for (const PlantCandidates& of : candidates)
    out.but_for.push_back(tilted(prior, scanned, worths_of(of, chances, prior)));
  out.all = std::move(out.but_for.back());
  out.but_for.pop_back();
  out.work = lessons.work;
  out.work += near_work;
  out.work += chances.work;
  return out;
}

// The part of p that replica r's run has by the weights of a mixture: under its law c, log of share * mean.
inline void weigh_again(Replicas& of, std::size_t r, const Mixture& before, const Mixture& now,
                        std::size_t c) {
  TriggerPool hits;
  for (TriggerPool::Entry hit : of.triggers[r].entries()) {
    hit.log_part +=
        now.log_weight(hit.tokens) - before.log_weight(hit.tokens) + std::log(now.component(c).share);
    hits.append(std::move(hit));
  }
  of.runs[r].log_p = hits.log_sum();
  of.triggers[r] = std::move(hits);
}

}  // namespace deeptail
