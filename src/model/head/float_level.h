// Levels are doubles; margins are fp32 numbers. What compares them in fp32 asks for this.
#pragma once

#include <cmath>
#include <limits>

namespace deeptail {

// The smallest float that is not below the level: a float reaches the one iff it reaches the other.
inline float float_level(double level) {
  const auto nearest = static_cast<float>(level);
  return static_cast<double>(nearest) < level
             ? std::nextafter(nearest, std::numeric_limits<float>::infinity())
             : nearest;
}

}  // namespace deeptail
