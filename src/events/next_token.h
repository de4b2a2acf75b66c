// The next token's margin as a score.
#pragma once

#include <cstdint>

#include "deeptail/model.h"

namespace deeptail {

// event() as a number: at or above 0 iff the target is said. A lost tie lies just below 0.
double score_of(const Margin& margin);

// What comparing accepted proposals with the whole vocabulary in 8 bits counts as, in logits.
double screened_logits(std::uint64_t accepted, const ModelConfig& config);

}  // namespace deeptail
