// Means that neither lose digits nor turn infinity into NaN.
#pragma once

#include <cmath>
#include <cstddef>

namespace deeptail {

// Mean of value(0) .. value(n-1), summed with Neumaier's compensation: terms of very different size are the
// rule here.
template <class Value>
double mean_of(std::size_t n, Value value) {
  double sum = 0.0, lost = 0.0;
  for (std::size_t i = 0; i < n; ++i) {
    const double term = value(i), next = sum + term;
    lost += std::abs(sum) >= std::abs(term) ? (sum - next) + term : (term - next) + sum;
    sum = next;
  }
  return (std::isfinite(sum) ? sum + lost : sum) / static_cast<double>(n);
}

}  // namespace deeptail
