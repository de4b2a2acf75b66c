// The pilot: finds levels and move settings by an adaptive run of its own; nothing of it enters the estimate.
#pragma once

#include <limits>

#include "estimators/tokensplit/meter.h"
#include "estimators/tokensplit/particles.h"
#include "estimators/tokensplit/triggers.h"

namespace deeptail {

struct PilotConfig {
  std::size_t n_particles = 256, initial_particles = 16384;
  double survive_fraction = 0.2;
  double forgotten = 0.1;  // parent correlation at which a level has moved enough
  std::size_t max_moves = 1024, fewest_moves = 32;
  // Of the whole pilot, about; it gives up at thrice that.
  double flops = std::numeric_limits<double>::infinity();
};

// What the replicas run on.
struct Plan {
  std::vector<double> levels = {};              // ascending; the last one is 0, the event, unless stopped
  std::vector<MoveSettings> settings = {};      // [levels]; the last level has none to make
  std::vector<double> flops_per_particle = {};  // of each level: to hold the particles and move them
  double hold_flops = 0.0;        // of these: to hold a particle; 0 where it is copied from the level before
  double held_score_flops = 0.0;  // of a particle's score after its moves
  double first_held = 0.0;  // where it is copied: the share of first draws that are computed again to be held
  bool starved = false;     // the budget did not pay for the moves that the pilot asked for
};

struct PilotResult {
  SplittingRun run = {};
  Plan plan = {};
  Work work = {};
  TriggerPool hits = {};  // those of its last population that have the event
  bool budget_spent = false;
};
// meter: asked between rounds of moves; it may end the pilot. Place: of place.h.
template <class Place>
PilotResult run_pilot(const Place& place, const PilotConfig& config, std::uint64_t seed, ThreadPool& pool,
                      Meter& meter);

// How much of where they began the particles remember: over the positions where they differ, the mean of
// (share that has the token it began with - share that two of them agree on) / (1 - the latter).
// begin, now: [n, length].
double parent_correlation(std::span<const TokenId> begin, std::span<const TokenId> now, std::size_t length);

}  // namespace deeptail
