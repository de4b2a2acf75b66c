// A first look: is the event frequent?
#pragma once

#include "estimators/tokensplit/place.h"

namespace deeptail {

struct Look {
  FirstDraw first = {};
  Work work = {};
};

std::size_t look_size(const TokensplitConfig& config);

// n draws from the law itself. Nothing of them enters an estimate.
template <class Place>
Look look_at(const Place& place, std::size_t n, std::uint64_t seed, ThreadPool& pool) {
  struct NoMoves final : MovePolicy {
    bool goes_on(const Work&) override { return true; }
    const MoveSettings& begin(const LevelView&, ScoreHints) override { return settings; }
    std::size_t how_far(const LevelView&, std::size_t) override { return 0; }
    bool stopped() const override { return false; }
    MoveSettings settings = {};
  } policy;
  auto population = place.population(1, policy, pool);
  population.sample(n, seed);
  std::vector<double> scores(n);
  population.scores(scores);
  return {hits_among(scores, 0.0), population.work()};
}

}  // namespace deeptail
