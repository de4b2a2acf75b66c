#include <algorithm>
#include <cmath>

#include "deeptail/loss.h"

namespace deeptail {

namespace {

struct Moments {
  double mass = 0.0, first = 0.0, second = 0.0;
  void add(double weight, double value) {
    mass += weight;
    first += weight * value;
    second += weight * value * value;
  }
};

// Mean and variance of the loss of p = k/n when the count is drawn again from Binomial(n, k/n). Truths of 0
// and 1 cannot be scored, so the count is conditioned on 1 .. n-1. The sum runs outwards from k until the
// weights vanish.
Moments recounted(const SpbParameters& s, std::uint64_t k, std::uint64_t n) {
  constexpr double kNegligible = 1e-18;    // of the weight at the mode
  constexpr double kManyCounts = 1 << 14;  // as a standard deviation
  const double samples = static_cast<double>(n), p = static_cast<double>(k) / samples;
  const double odds = p / (1.0 - p);
  const auto loss = [&](double count) { return spb_weighted(s, count / samples, p); };
  Moments sum;
  if (const double sd = std::sqrt(samples * p * (1.0 - p)); sd > kManyCounts) {
    // So many counts are a normal variable for the loss: what that leaves out is of order 1 / (n p).
    for (int i = -9 * 64; i <= 9 * 64; ++i) {
      const double z = i / 64.0;
      sum.add(std::exp(-0.5 * z * z), loss(static_cast<double>(k) + z * sd));
    }
    return {1.0, sum.first / sum.mass, sum.second / sum.mass};
  }
  double weight = 1.0;
  for (double count = static_cast<double>(k); count < samples && weight > kNegligible; ++count) {
    sum.add(weight, loss(count));
    weight *= (samples - count) / (count + 1.0) * odds;
  }
  weight = 1.0;
  for (double count = static_cast<double>(k); count > 1.0 && weight > kNegligible; --count) {
    weight *= count / (samples - count + 1.0) / odds;
    sum.add(weight, loss(count - 1.0));
  }
  return {1.0, sum.first / sum.mass, sum.second / sum.mass};
}

}  // namespace

NoiseFloor noise_floor(const SpbParameters& s, std::span<const std::uint64_t> counts, std::uint64_t samples) {
  if (counts.empty()) throw InputError("the noise floor needs at least one count");
  double mean = 0.0, variance = 0.0;
  for (const std::uint64_t k : counts) {
    if (k == 0 || k >= samples)
      throw InputError(
          "a truth of {} out of {} samples is not between 0 and 1: the noise floor is not defined", k,
          samples);
    const Moments m = recounted(s, k, samples);
    mean += m.first;
    variance += std::max(0.0, m.second - m.first * m.first);
  }
  const double n = static_cast<double>(counts.size());
  return {mean / n, std::sqrt(variance) / n};
}

}  // namespace deeptail
