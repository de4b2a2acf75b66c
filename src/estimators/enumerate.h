// Laws with few inputs: every one is looked at, and the answer is no estimate.
#pragma once

#include <cstdint>

#include "deeptail/estimators.h"

namespace deeptail {

// How many inputs a law of token tables can give, where those are at most `most`; 0: more, or another law.
std::uint64_t few_inputs(const InputLaw& law, std::uint64_t most);

struct EnumerateConfig {
  std::string method = {};  // that was asked
  std::uint64_t seed = 0;   // likewise
  std::size_t max_triggers = 3;
};
// The probability summed over all inputs of a law with tables, of an event without numbers of its own.
// Stopped early it tells what the rest leaves open.
Estimate count_all_inputs(const Transformer& model, const InputLaw& law, const Event& event,
                          const EnumerateConfig& config, ThreadPool& pool, const Watch& watch = {});

}  // namespace deeptail
