// The next token's margin as a score.
#pragma once

#include <cstdint>
#include <vector>

#include "deeptail/model.h"

namespace deeptail {

// event() as a number: at or above 0 iff the target is said. A lost tie lies just below 0.
double score_of(const Margin& margin);

// What comparing accepted proposals with the whole vocabulary in 8 bits counts as, in logits.
double screened_logits(std::uint64_t accepted, const ModelConfig& config);

// Of a changed input and its margin, with a screen.
double exact_rescoring_flops(const ModelConfig& config, std::size_t length, std::size_t first_changed);

// Rows of a batch without those that came before.
struct DistinctRows {
  std::vector<std::uint32_t> first;    // [distinct]: where each is first, ascending
  std::vector<std::uint32_t> same_as;  // [rows]: which of them each is; never more than the row's own number
};
DistinctRows distinct_rows(TokenBatch batch);

}  // namespace deeptail
