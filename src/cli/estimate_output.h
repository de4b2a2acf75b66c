// How deeptail estimate tells its results.
#pragma once

#include <optional>
#include <vector>

#include "core/progress.h"
#include "deeptail/estimators.h"

namespace deeptail::cli {

// The estimate's own fields, and at the end what only the command line knows: one line of JSON.
std::string estimate_line(const Estimate& e, const std::optional<NamedTokenizer>& tokenizer);

// Prints estimates in the order of their targets, each as soon as those before it are there: one in full,
// several as the rows of a table, or as lines of JSON.
class EstimatePrinter {
 public:
  // Both must outlive it. meter: its line is cleared before anything is printed.
  EstimatePrinter(std::size_t n_targets, bool json, const std::optional<NamedTokenizer>& tokenizer,
                  ProgressMeter& meter);
  void take(std::size_t target, Estimate estimate);
  std::size_t printed() const { return next_; }
  bool budget_spent() const { return budget_spent_; }

 private:
  void print(Estimate estimate);

  bool json_;
  const std::optional<NamedTokenizer>& tokenizer_;
  ProgressMeter& meter_;
  std::vector<std::optional<Estimate>> waiting_;  // [n_targets]
  std::size_t next_ = 0;
  bool budget_spent_ = false;
};

}  // namespace deeptail::cli
