// Trajectories on chains whose probabilities are known by dynamic programming.
#include "splitting/trajectories.h"

#include <gtest/gtest.h>

#include <functional>

#include "sizes.h"

namespace deeptail {
namespace {

// A walk of 60 steps, up with chance 0.3: the event is that it ever is at `goal`.
class Walk {
 public:
  static constexpr std::size_t kSteps = 60;
  static constexpr double kUp = 0.3;
  explicit Walk(int goal) : goal_(goal), chance_((kSteps + 1) * (2 * kSteps + 1)) {
    for (std::size_t t = kSteps + 1; t-- > 0;)
      for (int x = -static_cast<int>(kSteps); x <= static_cast<int>(kSteps); ++x)
        chance_[at(t, x)] = x >= goal     ? 1.0
                            : t == kSteps ? 0.0
                            : std::abs(x) == static_cast<int>(kSteps)
                                ? 0.0
                                : kUp * chance_[at(t + 1, x + 1)] + (1.0 - kUp) * chance_[at(t + 1, x - 1)];
  }
  int goal() const { return goal_; }
  double committor(std::size_t t, int x) const { return chance_[at(t, x)]; }
  double truth() const { return committor(0, 0); }

 private:
  static std::size_t at(std::size_t t, int x) {
    return t * (2 * kSteps + 1) + static_cast<std::size_t>(x + static_cast<int>(kSteps));
  }
  int goal_;
  std::vector<double> chance_;
};

class WalkPaths {
 public:
  using Score = std::function<double(std::size_t t, int x)>;
  WalkPaths(const Walk& walk, Score score) : walk_(walk), score_(std::move(score)) {}

  void sample(std::size_t n, std::uint64_t seed) {
    paths_.assign(n, {0});
    maxima_.resize(n);
    for (std::size_t i = 0; i < n; ++i) go_on(i, {seed, Stream::kInputs}, i);
  }
  void maxima(std::span<double> out) const { std::copy(maxima_.begin(), maxima_.end(), out.begin()); }
  bool branch(std::span<const PathBranch> branches, double level, std::size_t step, std::uint64_t seed) {
    for (const auto& [to, from] : branches) {
      std::size_t t = 0;
      while (!(score_of(from, t) > level)) ++t;
      paths_[to].assign(paths_[from].begin(), paths_[from].begin() + static_cast<std::ptrdiff_t>(t + 1));
      go_on(to, {seed, Stream::kMoves}, step_index(0, step, to));
    }
    return true;
  }

 private:
  double score_of(std::size_t i, std::size_t t) const {
    const int x = paths_[i][t];
    return x >= walk_.goal() ? std::numeric_limits<double>::infinity() : score_(t, x);
  }
  void go_on(std::size_t i, RngKey key, std::uint64_t index) {
    auto& path = paths_[i];
    while (path.size() <= Walk::kSteps && path.back() < walk_.goal()) {
      const double u = unit_double(uniform64(key, index, static_cast<std::uint32_t>(path.size())));
      path.push_back(path.back() + (u < Walk::kUp ? 1 : -1));
    }
    maxima_[i] = score_of(i, 0);
    for (std::size_t t = 1; t < path.size(); ++t) maxima_[i] = std::max(maxima_[i], score_of(i, t));
  }

  const Walk& walk_;
  Score score_;
  std::vector<std::vector<int>> paths_;
  std::vector<double> maxima_;
};

struct Found {
  double mean = 0.0, error = 0.0, log_variance = 0.0;
};
Found repeat(const Walk& walk, const WalkPaths::Score& score, const PathsConfig& config, std::size_t runs) {
  double sum = 0.0, squares = 0.0, logs = 0.0, log_squares = 0.0;
  for (std::size_t r = 0; r < runs; ++r) {
    WalkPaths paths(walk, score);
    const double ratio = std::exp(run_trajectories(paths, config, derived_seed(11, r)).log_p) / walk.truth();
    sum += ratio;
    squares += ratio * ratio;
    logs += std::log(ratio);
    log_squares += std::log(ratio) * std::log(ratio);
  }
  const auto n = static_cast<double>(runs);
  const double mean = sum / n, variance = (squares / n - mean * mean) * n / (n - 1.0);
  return {mean, std::sqrt(variance / n), (log_squares - logs * logs / n) / (n - 1.0)};
}

// With the exact chance as the score, the variance of log p is that of an ideal run, -ln p / N, down to 1e-13.
TEST(Trajectories, AnExactScoreIsIdeal) {
  for (const int goal : {12, 36}) {
    const Walk walk(goal);
    const PathsConfig config{.n_paths = 100, .killed = 5};
    const std::size_t runs = sized<std::size_t>(24, 3);
    const Found found = repeat(
        walk, [&](std::size_t t, int x) { return walk.committor(t, x); }, config, runs);
    const double ideal = -std::log(walk.truth()) / static_cast<double>(config.n_paths);
    if (runs > 20) {  // of fewer the standard error says nothing
      EXPECT_LT(std::abs(found.mean - 1.0), 3.5 * found.error + 1e-12) << walk.truth();
      EXPECT_LT(found.log_variance, 2.2 * ideal) << walk.truth();
      EXPECT_GT(found.log_variance, 0.35 * ideal) << walk.truth();
    }
  }
  EXPECT_LT(Walk(36).truth(), 1e-12);
}

// Scores with many ties, of the wrong time, or without sense: the mean is the truth all the same.
TEST(Trajectories, AnyScoreIsUnbiased) {
  const Walk walk(4);
  ASSERT_GT(walk.truth(), 0.01);
  const std::vector<WalkPaths::Score> scores = {
      [](std::size_t, int x) { return static_cast<double>(x); },
      [](std::size_t, int x) { return static_cast<double>(x / 3); },
      [](std::size_t t, int x) {
        return unit_double(uniform64({7, Stream::kInputs}, t, static_cast<std::uint32_t>(x + 100)));
      },
      [](std::size_t t, int x) { return static_cast<double>(-x) - 0.1 * static_cast<double>(t); }};
  for (std::size_t s = 0; s < scores.size(); ++s)
    for (const std::size_t killed : {1, 7}) {
      const Found found =
          repeat(walk, scores[s], {.n_paths = 20, .killed = killed}, sized<std::size_t>(300, 20));
      EXPECT_LT(std::abs(found.mean - 1.0), 3.5 * found.error) << s << " " << killed;
    }
}

TEST(Trajectories, NothingAboveTheLevelIsExtinct) {
  const Walk walk(40);
  WalkPaths paths(walk, [](std::size_t, int) { return 0.0; });
  const SplittingRun run = run_trajectories(paths, {.n_paths = 10, .killed = 2}, 1);
  EXPECT_EQ(run.end, SplittingEnd::kExtinct);
  EXPECT_EQ(run.log_p, -std::numeric_limits<double>::infinity());
  EXPECT_EQ(run.first.n, 10u);
}

}  // namespace
}  // namespace deeptail
