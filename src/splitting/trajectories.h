// Splitting of paths that grow step by step (trajectory-adaptive multilevel splitting: Brehier, Gazeau, Goudenege,
// Lelievre and Rousset 2016). A path's score is the largest that one of its prefixes has. The lowest paths are given
// up for copies of others, up to where those first rise above the level, that go on anew from there. Unbiased for
// every score of prefixes, with levels chosen from the population itself.
#pragma once

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "core/random.h"
#include "deeptail/splitting.h"

namespace deeptail {

// Path `to` becomes a copy of `from` up to its first prefix above the level, and goes on anew.
struct PathBranch {
  std::uint32_t to, from;
};

template <class P>
concept Paths = requires(P& p, std::size_t n, std::uint64_t seed, std::span<double> out,
                         std::span<const PathBranch> branches, double level) {
  p.sample(n, seed);  // n independent paths
  p.maxima(out);      // [n]: the largest score of a prefix; infinite iff the path has the event
  // The n-th time; returns false when it was cut short.
  { p.branch(branches, level, n, seed) } -> std::convertible_to<bool>;
};

struct PathsConfig {
  std::size_t n_paths = 200;
  std::size_t killed = 20;  // at least, in each step; more where scores tie
  std::size_t max_steps = 100000;
};

template <Paths P>
SplittingRun run_trajectories(P& paths, const PathsConfig& config, std::uint64_t seed) {
  constexpr double kEvent = std::numeric_limits<double>::infinity();
  const std::size_t n = config.n_paths, k = std::clamp<std::size_t>(config.killed, 1, n - 1);
  SplittingRun run;
  paths.sample(n, seed);
  std::vector<double> maxima(n), sorted;
  const auto finish = [&](SplittingEnd end, double log_p) {
    run.end = end;
    run.log_p = log_p;
    return run;
  };
  for (std::size_t step = 0;; ++step) {
    paths.maxima(maxima);
    if (step == 0) run.first = hits_among(maxima, kEvent);
    sorted = maxima;
    std::nth_element(sorted.begin(), sorted.begin() + static_cast<std::ptrdiff_t>(k - 1), sorted.end());
    const double level = sorted[k - 1];
    std::vector<std::uint32_t> dead, alive;
    for (std::uint32_t i = 0; i < n; ++i) (maxima[i] > level ? alive : dead).push_back(i);
    if (level == kEvent || step + 1 >= config.max_steps) {
      const auto hits = static_cast<double>(std::count(maxima.begin(), maxima.end(), kEvent));
      const double share = hits / static_cast<double>(n);
      run.genealogy_variance += share > 0.0 ? (1.0 - share) / hits : 0.0;
      return finish(hits > 0.0 ? SplittingEnd::kReached : SplittingEnd::kExtinct,
                    run.log_reach + std::log(share));
    }
    Level& record = run.levels.emplace_back(Level{
        .level = level, .survive_fraction = static_cast<double>(alive.size()) / static_cast<double>(n)});
    record.particles = n;
    record.survivors = alive.size();
    if (alive.empty()) return finish(SplittingEnd::kExtinct, -kEvent);
    run.log_reach += std::log(record.survive_fraction);
    run.genealogy_variance +=
        static_cast<double>(dead.size()) / (static_cast<double>(n) * static_cast<double>(alive.size()));
    std::vector<PathBranch> branches;
    for (const std::uint32_t i : dead) {
      const double u = unit_double(uniform64({seed, Stream::kResample}, step, i));
      const auto parent = static_cast<std::size_t>(u * static_cast<double>(alive.size()));
      branches.push_back({i, alive[std::min(parent, alive.size() - 1)]});
    }
    if (!paths.branch(branches, level, step, seed)) return finish(SplittingEnd::kStopped, -kEvent);
  }
}

}  // namespace deeptail
