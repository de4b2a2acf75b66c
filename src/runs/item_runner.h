// Computes items of a grid, keeping what the next one may share: the model, the law, the activations.
#pragma once

#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "deeptail/estimators.h"
#include "runs/grid.h"

namespace deeptail {

class ItemRunner {
 public:
  // Both must outlive it. most_capture_seconds: for a forecast, activations are captured for about this long
  // and then repeated until there are as many as the method wants.
  ItemRunner(const Grid& grid, ThreadPool& pool,
             double most_capture_seconds = std::numeric_limits<double>::infinity())
      : grid_(grid), pool_(pool), most_capture_seconds_(most_capture_seconds) {}

  // The item's data line; nothing when the watch gave it up. It is told the method's progress, with a share
  // from 0 to 1; while activations are captured the share is 0.
  std::optional<std::string> run(const GridItem& item, const Watch& watch);

  // Whether items of this one's pair and variant are better run together.
  bool runs_many(const GridItem& item) const {
    return static_cast<bool>(grid_.suite.variants[item.variant].method.run_many);
  }
  // Items of one pair and variant together, each with its data line as soon as it is there. False when they
  // were given up; what was told until then counts. Where draws are shared, all are of one replica; the method is asked
  // about all targets whichever these are, so that an answer and its cost do not depend on what is left.
  bool run_many(std::span<const GridItem* const> items,
                const std::function<void(const GridItem&, const std::string& line)>& on_line,
                const Watch& watch);

  // Loads what the item needs. False when it was given up.
  bool prepare(const GridItem& item, const Watch& watch);

  double last_seconds() const { return last_seconds_; }  // of the last item, without its activations
  // Of all activations that the last item wanted, also where fewer were captured.
  double capture_seconds() const { return capture_seconds_; }

 private:
  bool capture_for(std::uint64_t wanted, std::uint64_t seed, const Watch& watch);
  std::vector<const GridItem*> asked_with(std::span<const GridItem* const> items) const;
  Question question(const GridItem& item, const Event& event) const;
  Estimate estimate(const GridItem& item, const Watch& watch);
  std::string line_of(const GridItem& item, Estimate estimate, double seconds) const;

  const Grid& grid_;
  ThreadPool& pool_;
  double most_capture_seconds_;
  std::optional<std::uint32_t> pair_;  // that the law and the activations are of
  std::string model_path_ = {};
  std::optional<LoadedModel> model_;
  std::unique_ptr<InputLaw> law_;
  Activations activations_ = {};
  std::string refused_ = {};  // why there are no activations: the machine has no room for them
  std::uint64_t captured_ = 0, captured_seed_ = 0;  // activations that are kept: how many, and whose
  double last_seconds_ = 0.0, capture_seconds_ = 0.0;
};

}  // namespace deeptail
