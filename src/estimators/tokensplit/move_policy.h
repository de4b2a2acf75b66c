// How far and in which way the particles of a level move: the pilot finds it out, the replicas follow it.
#pragma once

#include <cstdint>

#include "deeptail/event.h"
#include "deeptail/splitting.h"
#include "estimators/tokensplit/moves.h"

namespace deeptail {

// A population at one level.
struct LevelView {
  double level;
  std::size_t number;   // of the level
  TokenBatch inputs;    // where the particles are, answers that are sampled included
  const Work& work;     // of the population, so far
  std::size_t at_once;  // moves after which it can be asked again
};

class MovePolicy {
 public:
  virtual ~MovePolicy() = default;
  // Asked while scores are computed; false leaves them unfinished.
  virtual bool goes_on(const Work& work) = 0;
  // Before the first move of a level. hints: from the scores that it was chosen by. The settings may change
  // until the level's last move.
  virtual const MoveSettings& begin(const LevelView& at, ScoreHints hints) = 0;
  // Moves to make next, after `made`; 0: no more at this level.
  virtual std::size_t how_far(const LevelView& at, std::size_t made) = 0;
  // What a round of moves did.
  virtual void learn(const LevelView&, const MoveTally&, MoveStats&) {}
  virtual void end(const LevelView&, const MoveStats&) {}
  // Was something left unfinished, so that the run counts for nothing?
  virtual bool stopped() const = 0;
};

// Moves a population as its policy says. hold() and run_moves() are the population's own.
template <class Population>
MoveStats move_by_policy(Population& population, MovePolicy& policy, double level, std::size_t number,
                         std::uint64_t seed) {
  const auto view = [&] {
    return LevelView{level, number, population.texts(), population.work(), population.moves_at_once()};
  };
  const MoveSettings& settings = policy.begin(view(), population.hints());
  population.hold(settings.hints);
  MoveStats stats;
  while (const std::size_t count = policy.how_far(view(), stats.moves)) {
    const MoveTally tally = population.run_moves({level, number, stats.moves, count, settings, seed}, stats);
    policy.learn(view(), tally, stats);
  }
  policy.end(view(), stats);
  return stats;
}

}  // namespace deeptail
