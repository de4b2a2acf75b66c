// Computes items of a grid, keeping what the next one may share: the model, the distribution, the
// activations.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "bench/grid.h"
#include "estimators/load_subject.h"

namespace deeptail {

class ItemRunner {
 public:
  ItemRunner(const Grid& grid, ThreadPool& pool) : grid_(grid), pool_(pool) {}  // both must outlive it

  // Told about how much of the item is done, from 0 to 1; false gives the item up.
  using Fraction = std::function<bool(double done)>;

  // The item's data line; nothing when it was given up.
  std::optional<std::string> run(const GridItem& item, const Fraction& keep_going);

  double last_seconds() const { return last_seconds_; }        // of the last item, without its activations
  double capture_seconds() const { return capture_seconds_; }  // of the activations that are kept

 private:
  bool prepare(const GridItem& item, const Fraction& keep_going);
  Estimate estimate(const GridItem& item, const MethodHooks& hooks);

  const Grid& grid_;
  ThreadPool& pool_;
  std::optional<std::uint32_t> pair_;  // that the subject is of
  std::unique_ptr<Subject> subject_;
  Activations activations_ = {};
  std::uint64_t captured_ = 0, captured_seed_ = 0;  // activations that are kept: how many, and whose
  double last_seconds_ = 0.0, capture_seconds_ = 0.0;
};

}  // namespace deeptail
