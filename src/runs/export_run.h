// A run as one file, for other programs (docs/runs.md).
#pragma once

#include <map>
#include <string>

#include "deeptail/runs.h"

namespace deeptail {

// A run and its data lines as they were in one moment, whoever writes to the folder meanwhile.
struct RunSnapshot {
  Run run = {};
  std::map<std::string, std::string> lines = {};  // by item
};
RunSnapshot read_snapshot(const std::string& folder);

// A header line and one line per item, in the order of the run's items.
std::string csv_of(const Run& run);
// The data line of each item, in the same order.
std::string jsonl_of(const RunSnapshot& snapshot);

}  // namespace deeptail
