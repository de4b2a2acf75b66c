// How far a piece of work is, and whether it shall go on.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

namespace [[gnu::visibility("default")]] deeptail {

struct Progress {
  double share = 0.0;          // of the whole, from 0 to about 1; of some methods a guess
  std::uint64_t done = 0;      // in the unit of the work; 0 where it cannot be told beforehand
  std::string_view note = {};  // what is being done, for people; often none
};
using Watch = std::function<bool(const Progress&)>;  // false: stop

}  // namespace deeptail
