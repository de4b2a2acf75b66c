// Independent runs on the pilot's frozen levels and moves.
#pragma once

#include <cstdint>
#include <mutex>

#include "estimators/tokensplit/place.h"
#include "estimators/tokensplit/summary.h"

namespace deeptail {

// Work of all threads, and whether to go on.
class Meter {
 public:
  Meter(double flops_per_forward, const KeepGoing& keep_going)
      : unit_(flops_per_forward), keep_going_(keep_going) {}
  // The pilot's work so far, then the work of finished levels of the replicas. False when the user wants to
  // stop.
  bool tell(double flops);
  bool add(double flops);
  bool goes_on() { return add(0.0); }

 private:
  bool ask(double flops);

  std::mutex mutex_;
  double unit_, finished_ = 0.0, most_ = 0.0;
  bool go_ = true;
  const KeepGoing& keep_going_;
};

// One estimate under way.
template <class Place>
struct TokensplitRun {
  const Place& place;
  const TokensplitConfig& config;  // with its budget
  double unit;                     // flops of a forward pass
  ThreadPool& pool;
  Meter& meter;
};

// first_part: their seeds are those of parts [first_part, first_part + replicas).
template <class Place>
Replicas run_replicas(const TokensplitRun<Place>& run, const Plan& plan, const Sizes& sizes,
                      std::uint64_t first_part);

}  // namespace deeptail
