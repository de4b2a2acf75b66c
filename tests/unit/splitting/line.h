// Particles on a line: x ~ N(0, 1), score = f(x); moves are autoregressive (pCN) steps. Probabilities are
// closed-form.
#pragma once

#include <cmath>
#include <functional>
#include <numbers>

#include "core/random.h"
#include "core/statistics.h"
#include "deeptail/splitting.h"

namespace deeptail {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct LineParticles {
  std::function<double(double)> score = [](double at) { return at; };
  std::size_t n_moves = 20;
  std::vector<double> x = {};

  std::size_t size() const { return x.size(); }
  void sample(std::size_t n, std::uint64_t seed) {
    x.resize(n);
    for (std::size_t i = 0; i < n; ++i) x[i] = normal({seed, Stream::kInputs}, i);
  }
  void scores(std::span<double> out) const {
    for (std::size_t i = 0; i < x.size(); ++i) out[i] = score(x[i]);
  }
  void resample(std::span<const std::uint32_t> parents) {
    const std::vector<double> old = x;
    x.resize(parents.size());
    for (std::size_t i = 0; i < parents.size(); ++i) x[i] = old[parents[i]];
  }
  MoveStats move(double level, std::size_t k, std::uint64_t seed) {
    MoveStats stats{.moves = n_moves};
    for (std::size_t step = 0; step < n_moves; ++step)
      for (std::size_t i = 0; i < x.size(); ++i) {
        const double proposal = 0.8 * x[i] + 0.6 * normal({seed, Stream::kMoves}, step_index(k, step, i));
        ++stats.proposed;
        if (score(proposal) < level) continue;
        x[i] = proposal;
        ++stats.accepted;
      }
    return stats;
  }

 private:
  static double normal(RngKey key, std::uint64_t index) {
    const auto u = uniform64_pair(key, index, 0);
    return std::sqrt(-2 * std::log(1 - unit_double(u[0]))) *
           std::cos(2 * std::numbers::pi * unit_double(u[1]));
  }
};
static_assert(Particles<LineParticles>);

}  // namespace deeptail
