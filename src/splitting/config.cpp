#include "core/random.h"
#include "deeptail/splitting.h"

namespace deeptail {

void SplittingConfig::validate() const {
  if (n_particles < 2) throw InputError("{} particles: expected at least 2", n_particles);
  for (std::size_t i = 0; i < sizes.size(); ++i)
    if (sizes[i] < 2) throw InputError("{} particles at level {}: expected at least 2", sizes[i], i);
  if (!(survive_fraction > 0.0 && survive_fraction < 1.0))
    throw InputError("survive fraction {}: expected a number between 0 and 1", survive_fraction);
  if (max_levels == 0) throw InputError("level cap 0: expected at least 1");
  if (std::isnan(threshold)) throw InputError("threshold is not a number");
  for (std::size_t i = 1; i < levels.size(); ++i)
    if (!(levels[i] > levels[i - 1]))
      throw InputError("level {} is {}: expected more than the level before it, {}", i, levels[i],
                       levels[i - 1]);
  if (!levels.empty() && levels.back() != threshold)
    throw InputError("the last level is {}: expected the threshold, {}", levels.back(), threshold);
}

std::string_view name_of(SplittingEnd end) {
  switch (end) {
    case SplittingEnd::kReached:
      return "reached";
    case SplittingEnd::kExtinct:
      return "extinct";
    case SplittingEnd::kPlateau:
      return "plateau";
    case SplittingEnd::kStopped:
      return "stopped";
  }
  return "";
}

std::uint64_t derived_seed(std::uint64_t seed, std::uint64_t part) {
  return uniform64({seed, Stream::kSeeds}, part, 0);
}

}  // namespace deeptail
