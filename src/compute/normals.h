// Keyed normal numbers and sums for log densities, in fp32 lanes.
#pragma once

#include "core/random.h"
#include "deeptail/compute.h"

namespace deeptail {

// out: [n] standard normals, numbers 0 to n - 1 of this key and index. Box and Muller on 31-bit words, so
// none is beyond 6.7; element j is the same for any n.
void fill_normals(RngKey key, std::uint64_t index, std::size_t n, float* out);

// sum of log(1 + factor x^2) over x: [n].
double sum_log1p_squares(std::size_t n, const float* x, float factor);

}  // namespace deeptail
