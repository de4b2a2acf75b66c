// So many moves at every level, in one way.
#pragma once

#include "estimators/tokensplit/move_policy.h"

namespace deeptail {

class FixedMoves final : public MovePolicy {
 public:
  FixedMoves(MoveSettings settings, std::size_t n_moves)
      : settings_(std::move(settings)), n_moves_(n_moves) {}
  bool goes_on(const Work&) override { return true; }
  const MoveSettings& begin(const LevelView&, ScoreHints) override { return settings_; }
  std::size_t how_far(const LevelView&, std::size_t made) override { return n_moves_ - made; }
  bool stopped() const override { return false; }

 private:
  MoveSettings settings_;
  std::size_t n_moves_;
};

}  // namespace deeptail
