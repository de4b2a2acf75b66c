// Recombinations a(i) d + b(j) of a cloud: for every j the accepting a's are intervals, counted by sorting.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "deeptail/activations.h"

namespace deeptail {

// A line through the unembedding's inputs: logits z + step * slope.
struct LineProblem {
  const PackedMatrix& w_u;  // [d, d_vocab]
  const Target& target;
  std::size_t n = 0;
  ConstRows normed = {};      // [n, d], as w_u takes them
  std::vector<double> slope;  // [d_vocab]: change of the logits per unit of a
};

struct AcceptedInterval {
  std::uint32_t row;
  double low, high;  // steps along the line that make row's logits accept
};
// The steps that make each row accept; a target of several tokens can have several disjoint intervals per
// row, merged and ascending. Ordered by row.
std::vector<AcceptedInterval> accepted_intervals(const LineProblem& problem, ThreadPool& pool);

// counts[g][h]: pairs (i in block g, j in block h) with a[i] within an interval of j, where steps are
// relative to origin[j]. Blocks are [n k / n_blocks, n (k + 1) / n_blocks).
std::vector<std::vector<std::uint64_t>> count_pairs(std::span<const double> a, std::span<const double> origin,
                                                    std::span<const AcceptedInterval> intervals,
                                                    std::size_t n_blocks, ThreadPool& pool);

}  // namespace deeptail
