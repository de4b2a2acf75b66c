// Part of cuda_tokensplit_check: the fp16 look at proposals against the exact one.
#pragma once

#include <cmath>
#include <limits>

#include "check_settings.h"
#include "compute_cuda/dense_model.h"
#include "compute_cuda/particle_engine.h"
#include "compute_cuda/truth_engine.h"
#include "estimators/tokensplit/moves.h"

namespace deeptail {

// Populations that climb, half of them at a time, from sampled inputs to margin 0: rare inputs are unlike
// sampled ones.
class ScreenCheck {
 public:
  using Rows = std::vector<std::uint32_t>;  // [n, length]

  ScreenCheck(const Asked& asked, std::size_t n)
      : n_(n),
        length_(asked.dist.length()),
        model_(cuda::dense_model(asked.model.transformer)),
        inputs_(cuda::dense_inputs(asked.dist)),
        engine_(model_, inputs_, {.max_particles = n}) {
    std::vector<double> weights(length_);
    for (std::size_t p = 0; p < length_; ++p) {
      const bool free = inputs_.first_row[p + 1] - inputs_.first_row[p] > 1;
      weights[p] = free ? 1.0 : 0.0;
      n_free_ += free;
    }
    cumulative_ = cumulative_of(weights);
    sampled_ = cuda::TruthEngine(model_, inputs_, 31, {.batch = n}).sampled_rows(0, n);
  }

  // Whether there is a look in fp16.
  bool possible() { return engine_.score_fast(0, {}); }

  void climb(std::uint32_t target) {
    constexpr std::uint32_t kAtMost = 60, kMoves = 16;
    target_ = target;
    Rows rows = sampled_;
    for (std::uint32_t number = 0; number < kAtMost; ++number) {
      const float level = resample(rows);
      const Rows decided = compare(rows, level, number);
      rows = moved(decided, level, number, 1, kMoves - 1);
      deepest_ = std::max(deepest_, level);
      if (level == 0.0f) return;
    }
  }

  // Returns the number of failures.
  int report() const {
    fmt::print(
        "  fp16 screen: {} proposals up to level {:.3f}, largest error {:.2e}, rms {:.2e}; {:.2f} % left "
        "open, decided otherwise {}\n",
        n_compared_, deepest_, worst_, std::sqrt(squares_ / static_cast<double>(n_compared_)),
        100.0 * static_cast<double>(n_open_) / static_cast<double>(std::max<std::size_t>(1, n_changed_)),
        n_otherwise_);
    return (worst_ > static_cast<double>(cuda::kSecondLook) / 2) + (n_otherwise_ > 0);
  }

 private:
  cuda::ParticleGroup group() const {
    return {.n_particles = static_cast<std::uint32_t>(n_), .target = target_};
  }
  std::vector<float> margins(const Rows& rows, bool fast) {
    const cuda::ParticleEngine::Lane& lane = engine_.lane(0);
    std::copy(rows.begin(), rows.end(), lane.rows.begin());
    const cuda::ParticleGroup all = group();
    if (fast)
      engine_.score_fast(0, {&all, 1});
    else
      engine_.score(0, {&all, 1});
    return {lane.margin.begin(), lane.margin.begin() + static_cast<std::ptrdiff_t>(n_)};
  }

  auto state(std::size_t i) const {
    return engine_.lane(0).states.begin() + static_cast<std::ptrdiff_t>(i * (length_ + 1));
  }

  Rows moved(const Rows& rows, float level, std::uint32_t number, std::uint32_t first, std::uint32_t count) {
    for (std::size_t i = 0; i < n_; ++i) *std::copy(at(rows, i), at(rows, i + 1), state(i)) = cuda::kNoPlant;
    cuda::MovingGroup all;
    static_cast<cuda::ParticleGroup&>(all) = group();
    all.seed = 32;
    all.level_number = number;
    all.first_step = first;
    all.n_steps = count;
    all.level = level;
    all.block = static_cast<std::uint32_t>(std::min<std::size_t>(4, n_free_));
    all.suffix_share = 0.1;
    all.block_share = 0.25;
    all.cumulative = cumulative_.data();
    engine_.move(0, {&all, 1});
    Rows now;
    for (std::size_t i = 0; i < n_; ++i) now.insert(now.end(), state(i), state(i + 1) - 1);
    return now;
  }

  // The better half in the place of all; returns their level.
  float resample(Rows& rows) {
    const std::vector<float> margin = margins(rows, false);
    std::vector<float> sorted = margin;
    const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(n_ / 2);
    std::nth_element(sorted.begin(), middle, sorted.end());
    const float level = std::min(*middle, 0.0f);
    Rows above;
    for (std::size_t i = 0; i < n_; ++i)
      if (margin[i] >= level) above.insert(above.end(), at(rows, i), at(rows, i + 1));
    for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = above[i % above.size()];
    return level;
  }

  // Step 0 of a level: a level below everything accepts, and so shows, all proposals; then the decisions at
  // `level`, which exact margins must explain. Returns where the particles are then.
  Rows compare(const Rows& rows, float level, std::uint32_t number) {
    const Rows proposed = moved(rows, -std::numeric_limits<float>::infinity(), number, 0, 1);
    const std::vector<float> exact = margins(proposed, false), fast = margins(proposed, true);
    const Rows decided = moved(rows, level, number, 0, 1);
    for (std::size_t i = 0; i < n_; ++i, ++n_compared_) {
      const double error = std::abs(static_cast<double>(fast[i]) - static_cast<double>(exact[i]));
      worst_ = std::isnan(error) ? 1e30 : std::max(worst_, error);
      squares_ += error * error;
      const bool changed = !std::equal(at(rows, i), at(rows, i + 1), at(proposed, i));
      n_changed_ += changed;
      n_open_ += changed && std::abs(fast[i] - level) < cuda::kSecondLook;
      n_otherwise_ +=
          !std::equal(at(decided, i), at(decided, i + 1), at(exact[i] >= level ? proposed : rows, i));
    }
    return decided;
  }

  Rows::const_iterator at(const Rows& rows, std::size_t i) const {
    return rows.begin() + static_cast<std::ptrdiff_t>(i * length_);
  }

  std::size_t n_, length_, n_free_ = 0;
  cuda::DenseModel model_;
  cuda::DenseInputs inputs_;
  cuda::ParticleEngine engine_;
  std::vector<double> cumulative_;
  Rows sampled_;
  std::uint32_t target_ = 0;
  float deepest_ = -std::numeric_limits<float>::infinity();
  double worst_ = 0.0, squares_ = 0.0;
  std::size_t n_compared_ = 0, n_changed_ = 0, n_open_ = 0, n_otherwise_ = 0;
};

inline int check_screen(const Settings& s, const Asked& asked, ThreadPool& pool) {
  if (s.count("--particles") == 0) return 0;
  ScreenCheck check(asked, s.count("--particles"));
  if (!check.possible()) return 0;
  for (const GridTarget& target : some_targets(s, asked, 4, pool))
    check.climb(static_cast<std::uint32_t>(target.token));
  return check.report();
}

}  // namespace deeptail
