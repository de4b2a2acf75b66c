// A run as one file, for other programs (docs/runs.md).
#pragma once

#include <string>

#include "deeptail/bench.h"

namespace deeptail {

// A header line and one line per item, in the order of the run's items.
std::string csv_of(const Run& run);
// The committed data lines of all shards, each item once, in the same order.
std::string jsonl_of(const std::string& folder);

}  // namespace deeptail
