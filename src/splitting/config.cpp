#include "core/random.h"
#include "deeptail/splitting.h"

namespace deeptail {

void SplittingConfig::validate() const {
  if (n_particles < 2 || n_particles > kMostParticles)
    throw InputError("{} particles: expected 2 to {}", n_particles, kMostParticles);
  if (initial_particles > kMostFirstDraw)
    throw InputError("a first draw of {}: expected at most {}", initial_particles, kMostFirstDraw);
  for (std::size_t i = 0; i < sizes.size(); ++i)
    if (sizes[i] < 2 || sizes[i] > kMostParticles)
      throw InputError("{} particles at level {}: expected 2 to {}", sizes[i], i, kMostParticles);
  if (!(survive_fraction > 0.0 && survive_fraction < 1.0))
    throw InputError("survive fraction {}: expected a number between 0 and 1", survive_fraction);
  if (max_levels == 0 || max_levels > kMostLevels)
    throw InputError("level cap {}: expected 1 to {}", max_levels, kMostLevels);
  if (std::isnan(threshold)) throw InputError("threshold is not a number");
  for (std::size_t i = 1; i < levels.size(); ++i)
    if (!(levels[i] > levels[i - 1]))
      throw InputError("level {} is {}: expected more than the level before it, {}", i, levels[i],
                       levels[i - 1]);
  if (!levels.empty() && levels.back() != threshold)
    throw InputError("the last level is {}: expected the threshold, {}", levels.back(), threshold);
}

std::uint64_t derived_seed(std::uint64_t seed, std::uint64_t part) {
  return uniform64({seed, Stream::kSeeds}, part, 0);
}

}  // namespace deeptail
