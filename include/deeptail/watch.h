// How far a piece of work is, and whether it shall go on: what every long function of the library tells and
// asks, in this one way.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string_view>

namespace [[gnu::visibility("default")]] deeptail {

struct Progress {
  double share = 0.0;          // of the whole, from 0 to about 1; of some methods a guess
  std::uint64_t done = 0;      // in the unit of the work, which its function names
  std::uint64_t total = 0;     // of the same; 0: it cannot be told beforehand
  std::uint64_t before = 0;    // of what is done, by earlier runs that this one continues
  double seconds_left = -1.0;  // where more is known than the rate until now; else negative
  std::string_view note = {};  // what is being done, for people; often none
};

// False: stop, with what was done until then. Never called by two threads at a time, but perhaps by one after
// another.
using Watch = std::function<bool(const Progress&)>;

inline Progress progress_of(std::uint64_t done, std::uint64_t total, std::uint64_t before = 0) {
  const double share = static_cast<double>(done) / std::max(1.0, static_cast<double>(total));
  return {.share = share, .done = done, .total = total, .before = before};
}

// Without a watch everything goes on.
inline bool goes_on(const Watch& watch, const Progress& progress) { return !watch || watch(progress); }

}  // namespace deeptail
