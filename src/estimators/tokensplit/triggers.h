// What the final populations tell: inputs that trigger the event, and the positions that decide it.
#pragma once

#include <span>
#include <vector>

#include "deeptail/estimators.h"

namespace deeptail {

// Inputs that say the target, from the ends of the replicas.
class TriggerPool {
 public:
  // inputs: [n]; scores: theirs.
  void add(TokenBatch inputs, std::span<const double> scores);
  void append(const TriggerPool& other) {
    entries_.insert(entries_.end(), other.entries_.begin(), other.entries_.end());
  }
  // Distinct, largest margin first.
  std::vector<Trigger> best(std::size_t count) const;
  // The positions where the triggers differ most from the prior (in relative entropy of the most frequent
  // token).
  std::vector<DecidingPosition> deciding(const Distribution& dist, std::size_t count) const;

 private:
  struct Entry {
    double margin;
    std::vector<TokenId> tokens;
  };
  std::vector<Entry> entries_;
};

}  // namespace deeptail
