// The shortest vector of a polyhedron: min |x|^2 subject to normals x + offsets >= 0, solved exactly.
//
// Goldfarb and Idnani's dual active-set method (1983): start at the unconstrained minimum 0, take in one
// violated constraint at a time, keep the multipliers nonnegative, and the objective rises until nothing is
// violated or no step is possible (then the polyhedron is empty). Constraints are priced in full only now and
// then; between, only those that were most violated count.
#pragma once

#include <cstddef>
#include <vector>

#include "deeptail/core.h"

namespace deeptail {

struct HalfSpaces {
  std::size_t n = 0, d = 0;
  std::vector<double> normals;  // [n, d]
  std::vector<double> offsets;  // [n]

  const double* normal(std::size_t i) const { return normals.data() + i * d; }
};

struct ShortestVector {
  bool feasible = false;
  std::vector<double> x;  // [d]
  std::size_t n_active = 0, n_steps = 0;
  // The largest of: |x - sum multiplier * normal| / |x|, violation / (|normal| max(1, |x|)), and negative
  // multipliers and |multiplier * slack|, relative to |x|^2.
  double kkt_residual = 0.0;

  double length() const;
};
ShortestVector shortest_vector(const HalfSpaces& polyhedron, ThreadPool& pool);

}  // namespace deeptail
