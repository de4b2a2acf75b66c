// A state that the library has never heard of: permutations, and the chance that nobody moved, 1 / n!.
#include "deeptail/any_particles.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <random>

#include "sizes.h"

namespace deeptail {
namespace {

constexpr std::size_t kPlaces = 8;
using Permutation = std::array<int, kPlaces>;

double score(const Permutation& p) {  // fixed points, all of them at 0
  double fixed = 0.0;
  for (std::size_t i = 0; i < kPlaces; ++i) fixed += p[i] == static_cast<int>(i);
  return fixed - static_cast<double>(kPlaces);
}

AnyParticles permutations(std::vector<Permutation>& states) {
  return AnyParticles(
      {.sample =
           [&](std::size_t n, std::uint64_t seed) {
             std::mt19937_64 random(seed);
             states.resize(n);
             for (Permutation& p : states) {
               std::iota(p.begin(), p.end(), 0);
               std::shuffle(p.begin(), p.end(), random);
             }
           },
       .scores =
           [&](std::span<double> out) { std::transform(states.begin(), states.end(), out.begin(), score); },
       .resample =
           [&](std::span<const std::uint32_t> parents) {
             std::vector<Permutation> next;
             for (const std::uint32_t parent : parents) next.push_back(states[parent]);
             states = std::move(next);
           },
       .move =
           [&](double level, std::size_t number, std::uint64_t seed) {
             MoveStats stats{.moves = 20};
             std::mt19937_64 random(seed * 1000 + number);
             for (Permutation& p : states)
               for (std::size_t step = 0; step < stats.moves; ++step) {
                 Permutation to = p;
                 std::swap(to[random() % kPlaces], to[random() % kPlaces]);
                 ++stats.proposed;
                 if (score(to) < level) continue;
                 ++stats.accepted;
                 p = to;
               }
             return stats;
           }});
}

TEST(AnyParticles, MeanOverSeedsIsTheExactProbability) {
  const double truth = 1.0 / 40320.0;
  constexpr int kSeeds = sized(60, 20);
  double sum = 0.0, squares = 0.0;
  for (int seed = 1; seed <= kSeeds; ++seed) {
    std::vector<Permutation> states;
    AnyParticles particles = permutations(states);
    const SplittingRun run = run_splitting(particles, {.n_particles = 200, .levels = {-6.0, -4.0, -2.0, 0.0}},
                                           static_cast<std::uint64_t>(seed));
    EXPECT_EQ(particles.size(), 200u);
    const double ratio = std::exp(run.log_p) / truth;
    sum += ratio;
    squares += ratio * ratio;
  }
  const double mean = sum / kSeeds, error = std::sqrt((squares / kSeeds - mean * mean) / (kSeeds - 1.0));
  EXPECT_LT(std::abs(mean - 1.0), 4.5 * error)
      << mean << " +- " << error;  // false alarm below 3e-4 (t with 19 degrees)
  EXPECT_LT(error, 0.1);
}

}  // namespace
}  // namespace deeptail
