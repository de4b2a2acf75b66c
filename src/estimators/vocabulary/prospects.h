// What one target may hang on, and the best of all that was looked at.
#pragma once

#include <algorithm>
#include <limits>
#include <vector>

#include "estimators/vocabulary/planted_law.h"

namespace deeptail {

// A pair that one target may hang on.
struct Prospect {
  PlantedTokens pair;
  double log_prior, z;  // z: mean margin over its spread
  double log_promise;   // sqrt(prior * Pr[event])
};

inline bool promises_more_than(const Prospect& a, const Prospect& b) {
  return a.log_promise != b.log_promise ? a.log_promise > b.log_promise : a.pair < b.pair;
}

// The best n of all that were added.
class BestProspects {
 public:
  explicit BestProspects(std::size_t n) : n_(n) {}
  static constexpr std::size_t most(std::size_t n) { return 4 * n + 64; }  // that it holds at a time
  double threshold() const { return threshold_; }
  void add(const Prospect& p) {
    if (!(p.log_promise > threshold_)) return;
    all_.push_back(p);
    if (all_.size() < most(n_)) return;
    cut();
    threshold_ = std::max_element(all_.begin(), all_.end(), promises_more_than)->log_promise;
  }
  std::vector<Prospect> take() {
    cut();
    std::sort(all_.begin(), all_.end(), promises_more_than);
    return std::move(all_);
  }

 private:
  void cut() {
    if (all_.size() <= n_) return;
    std::nth_element(all_.begin(), all_.begin() + static_cast<std::ptrdiff_t>(n_), all_.end(),
                     promises_more_than);
    all_.resize(n_);
  }
  std::size_t n_;
  double threshold_ = -std::numeric_limits<double>::infinity();
  std::vector<Prospect> all_;
};

}  // namespace deeptail
