// Work of all threads of one estimate, and whether to go on.
#pragma once

#include <algorithm>
#include <cstdint>
#include <mutex>

#include "deeptail/watch.h"

namespace deeptail {

class Meter {
 public:
  // budget: in forward-pass equivalents, as the watch is told them.
  Meter(double flops_per_forward, double budget, const Watch& watch)
      : unit_(flops_per_forward), total_(static_cast<std::uint64_t>(budget)), watch_(watch) {}
  // Work that is under way, beyond what was added. False when the user wants to stop.
  bool tell(double flops) {
    const std::lock_guard lock(mutex_);
    return ask(finished_ + flops);
  }
  // Work that is finished: a pilot's, then that of the replicas' levels.
  bool add(double flops) {
    const std::lock_guard lock(mutex_);
    finished_ += flops;
    return ask(finished_);
  }
  bool goes_on() { return add(0.0); }

 private:
  bool ask(double flops) {
    most_ = std::max(most_, flops / unit_);
    go_ = go_ && deeptail::goes_on(watch_, progress_of(static_cast<std::uint64_t>(most_), total_));
    return go_;
  }

  std::mutex mutex_;
  double unit_, finished_ = 0.0, most_ = 0.0;
  std::uint64_t total_;
  bool go_ = true;
  const Watch& watch_;
};

}  // namespace deeptail
