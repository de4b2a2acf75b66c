// Counting with resume: OUT.partial holds what is done, OUT appears when all is, OUT.lock is held meanwhile.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "deeptail/truth.h"

namespace deeptail {

struct ResumableCount {
  std::uint64_t first = 0, samples = 0;
  std::string out = {};
  std::function<bool()> is_finished;  // throws InputError where `out` holds something else
  // What an earlier run left in the file, or nothing; returns how many samples. Throws InputError for another's.
  std::function<std::uint64_t(const std::string& partial)> load;
  // Samples [first, first + n), or fewer when the watch, which is told those of this run, says so; returns how many.
  std::function<std::uint64_t(std::uint64_t first, std::uint64_t n, const Watch& watch)> count;
  std::function<void(const std::string& path, std::uint64_t done)> save;
  std::function<void(const std::string& partial)> remove;
};

CountOutcome count_resumably(const ResumableCount& job, const Watch& watch);

}  // namespace deeptail
