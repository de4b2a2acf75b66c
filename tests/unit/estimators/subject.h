// dt-1l and a shipped distribution.
#pragma once

#include "deeptail/estimators.h"

namespace deeptail {

inline const Transformer& dt_1l() {
  static const Transformer model = Transformer::load(fmt::format("{}/models/dt-1l", DEEPTAIL_SOURCE));
  return model;
}
inline Distribution shipped(const std::string& name) {
  return load_distribution(fmt::format("{}/distributions/{}.json", DEEPTAIL_SOURCE, name));
}

}  // namespace deeptail
