// How continuations are drawn, in results.
#pragma once

#include "core/json.h"
#include "deeptail/sampling.h"

namespace deeptail {

inline void add_sampling(OrderedJson& event, const SamplingConfig& sampling) {
  event["within"] = sampling.max_tokens;
  event["greedy"] = sampling.greedy;
  if (!sampling.greedy) {
    event["temperature"] = sampling.temperature;
    event["top_k"] = sampling.top_k;
    event["top_p"] = sampling.top_p;
  }
  event["stop"] = sampling.stop;
}

}  // namespace deeptail
