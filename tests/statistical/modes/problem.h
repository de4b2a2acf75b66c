// A question whose answer is known: a few positions of an input, the lock, choose a row, and the event
// happens where the sum of the other tokens' effects reaches the row's threshold.
//
//   score = slope (units - threshold) / kUnitsPerSd,   Pr[event] = sum over rows of prior * Pr[units >= threshold]
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "context_sum.h"
#include "deeptail/event.h"
#include "deeptail/law.h"

namespace deeptail::modes {

struct Row {
  double slope = 1.0;
  std::int64_t threshold = 0;
  double prior = 0.0;  // chance that the lock chooses this row
};

struct Lock {
  std::vector<Row> rows;
  std::function<std::size_t(std::span<const TokenId> tokens)> row_of;
  // For finding what an answer saw: rows with the same last token, say, where they are small.
  std::vector<std::size_t> group = {};  // [rows]; empty: each row is its own

  // Of a lock of tokens (token_lock), else empty: [modes][positions]. Row positions.size() * m + n - 1 is that n of
  // mode m's tokens are there; the last row, that none of any is.
  std::vector<std::size_t> positions = {};
  std::vector<std::vector<TokenId>> modes = {};
};

class Problem {
 public:
  Problem(std::string family, std::string name, Distribution dist, ContextSum context, Lock lock);
  Problem(const Problem&) = delete;  // its event refers to it

  const std::string& family() const { return family_; }
  const std::string& name() const { return name_; }
  const InputLaw& law() const { return law_; }
  const Event& event() const { return event_; }
  const ContextSum& context() const { return context_; }
  const Lock& lock() const { return lock_; }
  double truth() const { return truth_; }
  double score(std::span<const TokenId> tokens) const;
  // Pr[score >= level] of each row times its prior: [rows].
  std::vector<double> masses(double level) const;

  // The share of the event's mass in modes that the given inputs are in. A mode is a row with at least a
  // hundredth of the mass, or what is left of a group, or of all.
  double recall(std::span<const std::vector<TokenId>> inputs) const;

 private:
  std::vector<std::size_t> modes() const;  // [rows]

  std::string family_, name_;
  TokenTables law_;
  ContextSum context_;
  Lock lock_;
  CallbackEvent event_;
  double truth_;
  std::vector<std::size_t> mode_;  // [rows]
};

using Problems = std::vector<std::unique_ptr<const Problem>>;

}  // namespace deeptail::modes
