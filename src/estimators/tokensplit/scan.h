// Which tokens lead to the event: tokens at the last position, tokens near or anywhere before it, and pairs
// of them, each tried in a few contexts.
//
// What it finds is where particles are sent (mixture.h); whatever it misses or misjudges costs variance,
// never the estimate's mean.
#pragma once

#include <optional>

#include "estimators/tokensplit/meter.h"
#include "estimators/tokensplit/place.h"
#include "inputs/planted_tables.h"

namespace deeptail {

struct ScanResult {
  std::optional<PlantList> plants = {};  // none where there is nothing to scan, or no budget for it
  bool all_pairs = false;  // every last token was tried with every one before it, in several contexts
  Work work = {};
};

// flops: what it may take, about. meter: asked whether to go on; null: it does.
template <class Place>
ScanResult scan_tokens(const Place& place, double flops, std::uint64_t seed, ThreadPool& pool,
                       Meter* meter = nullptr);

}  // namespace deeptail
