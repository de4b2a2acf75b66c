// How long a run will take and how much memory, before it is started: from short probes of its own items.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runs/run_suite.h"

namespace deeptail {

struct Forecast {
  struct Row {
    std::string variant = {};
    std::size_t items = 0;  // to do
    double seconds = 0.0;   // of all of them
  };
  std::vector<Row> rows = {};
  std::size_t items = 0, done = 0;  // of this shard
  double capture_seconds = 0.0;     // for making activations
  std::uint64_t peak_bytes = 0;     // of this process until now, probes included

  double seconds() const;
};

// Runs an item of every variant on every model for about a second, more of them while there is time (half a
// minute in all), and throws the results away. Of activations only so many are captured as tell the speed.
// What the folder already holds of a variant on a pair is used instead. The watch is told probes.
Forecast forecast_run(const Grid& grid, const RunOptions& options, ThreadPool& pool, const Watch& watch);

}  // namespace deeptail
