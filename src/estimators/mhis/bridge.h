// Bridge sampling: the ratio of two normalising constants from draws of both laws.
#pragma once

#include <span>

namespace deeptail {

struct BridgeResult {
  double log_z = 0.0;
  int rounds = 0;
  bool settled = false;
};
// log Z, Z = E_p[e^l], from l at draws of p and at draws of the law p e^l / Z. Meng and Wong (1996), optimal
// bridge, iterated from `start`:
//   Z <- Z mean_p[1 / (s2 + s1 e^-a)] / mean_pi[1 / (s1 + s2 e^a)],  a = l - log Z, s1 and s2 the shares of
//   draws.
BridgeResult bridge(std::span<const double> plain, std::span<const double> tilted, double start);

}  // namespace deeptail
