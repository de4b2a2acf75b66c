// Parts of a report by their place.
#pragma once

#include <vector>

#include "deeptail/report.h"

namespace deeptail {

// The settings that figures and tables show: one of each method.
inline std::vector<std::size_t> headline_variants(const Report& r) {
  std::vector<std::size_t> out;
  for (std::size_t v = 0; v < r.variants.size(); ++v)
    if (r.variants[v].headline) out.push_back(v);
  return out;
}

// Null where there is none.
inline const Score* find_score(const Report& r, std::size_t model, std::size_t dist, std::size_t variant) {
  for (const Score& s : r.scores)
    if (s.model == model && s.dist == dist && s.variant == variant) return &s;
  return nullptr;
}

// "SPB (1.5, 0)": a profile by its parameters; the standard losses by their names.
std::string loss_title(const Report& r, std::size_t loss);
// The loss of a setting on a model, over all distributions that have scored targets; not a number where one
// of them lacks it.
MeanError model_loss(const Report& r, std::size_t model, std::size_t variant, std::size_t loss);

}  // namespace deeptail
