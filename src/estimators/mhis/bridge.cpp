#include "estimators/mhis/bridge.h"

#include <cmath>

namespace deeptail {

BridgeResult bridge(std::span<const double> plain, std::span<const double> tilted, double start) {
  const auto n1 = static_cast<double>(plain.size()), n2 = static_cast<double>(tilted.size());
  const double s1 = n1 / (n1 + n2), s2 = n2 / (n1 + n2);
  BridgeResult out{.log_z = start};
  while (!out.settled && out.rounds++ < 500) {
    double up = 0.0, down = 0.0;
    for (const double l : plain) up += 1.0 / (s2 + s1 * std::exp(out.log_z - l));
    for (const double l : tilted) down += 1.0 / (s1 + s2 * std::exp(l - out.log_z));
    const double step = std::log(up / n1) - std::log(down / n2);
    if (!std::isfinite(step)) return out;  // the laws do not overlap at all
    out.log_z += step;
    out.settled = std::abs(step) < 1e-9;
  }
  return out;
}

}  // namespace deeptail
