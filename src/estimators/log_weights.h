// Importance weights, kept as logs: sums, how even they are, and intervals from batches of them.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "deeptail/splitting.h"

namespace deeptail {

inline constexpr double kLogZero = -std::numeric_limits<double>::infinity();

struct WeightSums {
  std::uint64_t count = 0, positive = 0;  // positive: of those, above 0
  double log_sum = kLogZero, log_sum_squares = kLogZero, log_largest = kLogZero;

  void add(double log_weight);
  void add(const WeightSums& other);
  double effective() const;      // (sum w)^2 / sum w^2; 0 for none
  double largest_share() const;  // of the sum; 0 for none
};

// Batches that are independent, or at least uncorrelated around the same mean. The estimate is
// sum_b h_b / sum_b w_b: h_b the weight of a batch's hits, w_b the weight of all that is in it (its size,
// where the proposal is normalised).
struct BatchSum {
  double log_hits = kLogZero, log_all = kLogZero;
};
struct BatchSpread {
  double relative_sd = 0.0;        // of the estimate, by the delta method
  double effective_batches = 0.0;  // (sum h)^2 / sum h^2, or the same of w, the smaller
};
BatchSpread spread_of(std::span<const BatchSum> batches);

// Half the width of an interval for log p: Student's t with as many degrees of freedom as effective batches,
// less one, and at least one. So an estimate that rests on one batch gets a factor of e^12.7, not a false
// certainty.
double log_half_width(double relative_sd, double effective_batches, double confidence);

// --- an upper bound when no hit was seen ---

// What one batch of n draws from a proposal g says about p. w = p / g;
// log_moments[k] = log E_p[w^kMomentPowers[k]], all 0 for g = p.
inline constexpr std::array<double, 4> kMomentPowers = {1.0, 2.0, 4.0, 8.0};
using LogMoments = std::array<double, kMomentPowers.size()>;
struct TiltedBatch {
  std::uint64_t n = 0;
  bool tilted = false;
  LogMoments log_moments = {};
};
// log of an upper bound for p(E), correct with at least the confidence when no draw of any batch was in E,
// also when a proposal was chosen by looking at earlier batches.
//
// With g_b(E) the chance of a hit, (1 - g)^n e^(n g) <= 1, so prod_b 1[no hit in b] e^(n_b g_b(E)) is a
// supermartingale and, by Markov's inequality, no hit and sum_b n_b g_b(E) >= L = log(1 / alpha) happen
// together with chance at most alpha. And p(E) <= c g_b(E) + Pr_p[w_b > c] <= c g_b(E) + c^-k E_p[w_b^k] for
// any c, k. So
//   p(E) <= (L + sum_b (n_b / c_b) tail_b) / sum_b (n_b / c_b),
// for all c_b, k at once; the best ones given the bound r itself are c = ((k + 1) E_p[w^k] / r)^(1/k).
double log_upper_bound(std::span<const TiltedBatch> batches, double confidence);

}  // namespace deeptail
