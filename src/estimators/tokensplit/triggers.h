// What the final populations tell: inputs that trigger the event, and the positions that decide it.
#pragma once

#include <span>
#include <vector>

#include "deeptail/estimators.h"

namespace deeptail {

// Inputs that say the target, from the ends of the replicas.
class TriggerPool {
 public:
  // inputs: [n]; hits: those that have the event; log_parts: [hits], each one's part of the estimate.
  // answers: [n], or none.
  void add(TokenBatch inputs, TokenBatch answers, std::span<const std::uint32_t> hits,
           std::span<const double> scores, std::span<const double> log_parts);
  void append(const TriggerPool& other) {
    entries_.insert(entries_.end(), other.entries_.begin(), other.entries_.end());
  }
  bool empty() const { return entries_.empty(); }
  // Distinct, largest margin first.
  std::vector<Trigger> best(std::size_t count) const;
  // The positions where the triggers, by their parts of the estimate, differ most from the prior (in relative
  // entropy of the most frequent token).
  std::vector<DecidingPosition> deciding(const Distribution& dist, std::size_t count) const;

  struct Entry {
    double margin;
    double log_part;
    std::vector<TokenId> tokens, answer;
  };
  void append(Entry entry) { entries_.push_back(std::move(entry)); }
  const std::vector<Entry>& entries() const { return entries_; }
  double log_largest() const;  // of all parts
  double log_sum() const;
  void scale(double log_factor) {
    for (Entry& entry : entries_) entry.log_part += log_factor;
  }

 private:
  std::vector<Entry> entries_;
};

}  // namespace deeptail
