#include "estimators/tokensplit/moves.h"

#include <numeric>

namespace deeptail {

std::vector<double> cumulative_of(std::span<const double> weights) {
  std::vector<double> cumulative(weights.size());
  std::partial_sum(weights.begin(), weights.end(), cumulative.begin());
  return cumulative;
}

}  // namespace deeptail
