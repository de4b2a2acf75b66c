#include "estimators/tokensplit/learn.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "core/random.h"
#include "core/statistics.h"

namespace deeptail {

namespace {

constexpr std::size_t kMostHits = 512, kFewestHits = 64;    // that are looked at
constexpr std::size_t kDraws = 4;                           // of each position's token
constexpr std::size_t kMostTries = 128, kFewestTries = 32;  // of each
// A token belongs to a plant where its loss is at least this share of the largest one.
constexpr double kMatters = 0.25;

// A hit, the run that it is of, and its share of what that run found.
struct Hit {
  const TriggerPool::Entry* entry;
  std::size_t run, number;  // and its own number there
  double share;
};

// Distinct ones, of every run alike; at most `most`, about.
std::vector<Hit> some_of(std::span<const TriggerPool> runs, std::size_t most) {
  std::vector<Hit> out;
  for (std::size_t run = 0; run < runs.size(); ++run) {
    std::set<std::vector<TokenId>> seen;
    std::vector<const TriggerPool::Entry*> distinct;
    for (const TriggerPool::Entry& entry : runs[run].entries())
      if (seen.insert(entry.tokens).second) distinct.push_back(&entry);
    const std::size_t n = std::min((most + runs.size() - 1) / runs.size(), distinct.size());
    double sum = 0.0;
    const double top = runs[run].log_largest();
    for (std::size_t i = 0; i < n; ++i) {
      const TriggerPool::Entry* entry = distinct[i * distinct.size() / n];
      out.push_back({entry, run, i, std::exp(entry->log_part - top)});
      sum += out.back().share;
    }
    for (std::size_t i = 0; i < n; ++i) out[out.size() - 1 - i].share /= sum;
  }
  return out;
}

// How much the score falls, on average, where a position's token is drawn anew: [hits, positions].
template <class Place>
class Losses {
 public:
  Losses(const Place& place, std::span<const Hit> hits, std::uint64_t seed, ThreadPool& pool)
      : dist_(*place.problem.law.tables()), free_(free_positions(dist_)), hits_(hits) {
    contexts_.resize(hits.size(), dist_.length());
    for (std::size_t i = 0; i < hits.size(); ++i) {
      std::copy(hits[i].entry->tokens.begin(), hits[i].entry->tokens.end(), contexts_.row(i).begin());
      contexts_.lengths[i] = static_cast<std::uint32_t>(dist_.length());
    }
    auto probe = place.probe(contexts_, hits.size(), pool);
    for (const std::size_t position : free_) measure(position, seed, probe);
  }
  const std::vector<std::size_t>& free() const { return free_; }
  double at(std::size_t hit, std::size_t free_number) const {
    return losses_[free_number * hits_.size() + hit];
  }
  const Work& work() const { return work_; }

 private:
  template <class Probe>
  void measure(std::size_t position, std::uint64_t seed, Probe& probe) {
    Inputs changed;
    changed.resize(kDraws * hits_.size(), dist_.length());
    for (std::size_t i = 0; i < changed.size(); ++i) {
      const auto from = contexts_.row(i % hits_.size());
      std::copy(from.begin(), from.end(), changed.row(i).begin());
      changed.lengths[i] = static_cast<std::uint32_t>(dist_.length());
      const Hit& hit = hits_[i % hits_.size()];
      const std::uint64_t number = (hit.run << 32) + hit.number * kDraws + i / hits_.size();
      changed.row(i)[position] = dist_.table(position).draw(
          uniform64({seed, Stream::kMoves}, number, static_cast<std::uint32_t>(position)));
    }
    const std::vector<std::uint32_t> first(changed.size(), static_cast<std::uint32_t>(position));
    std::vector<double> scores(changed.size());
    work_ += probe.scores(changed, first, scores);
    for (std::size_t hit = 0; hit < hits_.size(); ++hit) {
      double loss = 0.0;
      for (std::size_t d = 0; d < kDraws; ++d)
        loss += std::max(0.0, hits_[hit].entry->margin - scores[d * hits_.size() + hit]);
      losses_.push_back(std::isfinite(loss) ? loss : 1e30);
    }
  }

  const Distribution& dist_;
  std::vector<std::size_t> free_;
  std::span<const Hit> hits_;
  Inputs contexts_;
  std::vector<double> losses_;  // [positions, hits]
  Work work_;
};

// What a hit would lose the event without, its largest loss first.
template <class Place>
std::vector<PlantedToken> deciding_tokens(const Losses<Place>& losses, std::size_t hit, const Hit& of) {
  std::vector<std::size_t> order(losses.free().size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return losses.at(hit, a) > losses.at(hit, b); });
  std::vector<PlantedToken> tokens;
  for (const std::size_t i : order) {
    if (tokens.size() == Plant::kMost || losses.at(hit, i) < kMatters * losses.at(hit, order[0])) break;
    const std::size_t position = losses.free()[i];
    tokens.push_back({static_cast<std::uint32_t>(position), of.entry->tokens[position]});
  }
  return tokens;
}

// Of one change at each free position.
double change_flops(const TokenProblem& problem) {
  double flops = 0.0;
  for (const std::size_t position : free_positions(*problem.law.tables()))
    flops += problem.event.change_flops(problem.model.config(), problem.law, position);
  return flops;
}

// How many hits may be looked at for so many flops.
std::size_t affordable(const TokenProblem& problem, double flops) {
  return static_cast<std::size_t>(std::clamp<double>(flops / (kDraws * change_flops(problem)), kFewestHits,
                                                     static_cast<double>(kMostHits)));
}

}  // namespace

template <class Place>
Lessons lessons_of(const Place& place, std::span<const TriggerPool> runs, double flops, std::uint64_t seed,
                   ThreadPool& pool) {
  Lessons out;
  const std::vector<Hit> hits = some_of(runs, affordable(place.problem, flops));
  if (hits.empty()) return out;
  const Losses<Place> losses(place, hits, seed, pool);
  for (std::size_t hit = 0; hit < hits.size(); ++hit)
    out.all.push_back({.tokens = deciding_tokens(losses, hit, hits[hit]),
                       .run = hits[hit].run,
                       .share = hits[hit].share,
                       .log_part = std::log(hits[hit].share) + runs[hits[hit].run].log_sum()});
  out.work = losses.work();
  return out;
}
template Lessons lessons_of(const CpuPlace&, std::span<const TriggerPool>, double, std::uint64_t,
                            ThreadPool&);
template Lessons lessons_of(const ServedPlace&, std::span<const TriggerPool>, double, std::uint64_t,
                            ThreadPool&);

namespace {

// The share of the scores that have the event. Where none has: what normal scores of their mean and spread would have of
// it, if a few levels of a run lead there.
double chance_of(std::span<const double> scores) {
  constexpr double kLeast = 1e-4;
  const auto all = static_cast<double>(scores.size());
  double n = 0.0, hits = 0.0, sum = 0.0, squares = 0.0;
  for (const double s : scores) {
    hits += s >= 0.0;
    if (!std::isfinite(s)) continue;
    n += 1.0;
    sum += s;
    squares += s * s;
  }
  if (hits > 0.0) return hits / all;
  const double variance = n < 2.0 ? 0.0 : (squares - sum * sum / n) / (n - 1.0);
  if (variance <= 0.0) return 0.0;
  const double chance = std::exp(log_normal_tail(-sum / n / std::sqrt(variance)));
  return chance < kLeast ? 0.0 : std::min(chance, 0.5 / all);
}

// The same whatever was found, since a chance must not depend on which plants are tried beside it: some of them are those
// of the very run that may not know of them.
std::size_t affordable_tries(const TokenProblem& problem, double flops) {
  constexpr double kUsualPlants = 448.0;
  const double mean =
      change_flops(problem) / static_cast<double>(free_positions(*problem.law.tables()).size());
  return static_cast<std::size_t>(
      std::clamp<double>(flops / (kUsualPlants * mean), kFewestTries, static_cast<double>(kMostTries)));
}

}  // namespace

template <class Place>
PlantChances chances_with(const Place& place, const std::set<Plant>& plants, double flops, std::uint64_t seed,
                          ThreadPool& pool) {
  constexpr std::size_t kAtOnce = 64;  // plants whose tries are scored together
  const std::size_t tries = affordable_tries(place.problem, flops);
  PlantChances out{.tries = tries};
  Inputs contexts = sample_inputs(place.problem.law, seed, 0, tries, pool);
  auto probe = place.probe(contexts, tries, pool);
  const std::vector<Plant> all(plants.begin(), plants.end());
  for (std::size_t from = 0; from < all.size(); from += kAtOnce) {
    const std::size_t n = std::min(kAtOnce, all.size() - from);
    Inputs changed;
    changed.resize(n * tries, contexts.max_length);
    std::vector<std::uint32_t> first(changed.size());
    for (std::size_t i = 0; i < changed.size(); ++i) {
      const Plant& plant = all[from + i / tries];
      const auto context = contexts.row(i % tries);
      std::copy(context.begin(), context.end(), changed.row(i).begin());
      changed.lengths[i] = contexts.lengths[i % tries];
      plant.write(changed.row(i));
      first[i] = plant.tokens().front().position;
    }
    std::vector<double> scores(changed.size());
    out.work += probe.scores(changed, first, scores);
    for (std::size_t i = 0; i < n; ++i)
      out.of[all[from + i]] = chance_of(std::span<const double>(scores).subspan(i * tries, tries));
  }
  return out;
}
template PlantChances chances_with(const CpuPlace&, const std::set<Plant>&, double, std::uint64_t,
                                   ThreadPool&);
template PlantChances chances_with(const ServedPlace&, const std::set<Plant>&, double, std::uint64_t,
                                   ThreadPool&);

PlantWorths worths_of(const PlantCandidates& candidates, const PlantChances& chances,
                      const Distribution& prior) {
  const double once = 1.0 / static_cast<double>(chances.tries);  // the event was there
  PlantWorths out;
  const auto take = [&](const Plant& plant, bool near_will_do) {
    const double chance = chances.of.at(plant);
    if (chance == 0.0 || (chance < once && !near_will_do)) return;
    double log_prior = 0.0;
    for (const PlantedToken& t : plant.tokens())
      log_prior += prior.table(t.position).log_probability(t.token);
    out[plant] = std::exp(log_prior) * std::sqrt(chance);
  };
  // A single token near the event is in so many inputs that it would leave nothing to the others.
  for (const Plant& plant : candidates.likely) take(plant, plant.tokens().size() > 1);
  for (const Plant& plant : candidates.further) take(plant, false);
  return out;
}

}  // namespace deeptail
