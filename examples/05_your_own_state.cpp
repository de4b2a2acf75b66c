// Splitting on a state of your own, without any language model: thirty coins, and the event that all show
// heads, 2^-30. The level loop asks particles for six things; anything that has them can be split (the
// concept Particles in splitting.h).
#include <deeptail/deeptail.h>

#include <bitset>
#include <cmath>
#include <cstdio>
#include <random>
#include <vector>

struct Coins {
  using State = std::bitset<30>;
  std::vector<State> states;

  std::size_t size() const { return states.size(); }
  void sample(std::size_t n, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    states.clear();
    for (std::size_t i = 0; i < n; ++i) states.emplace_back(random());
  }
  void scores(std::span<double> out) {
    for (std::size_t i = 0; i < size(); ++i) out[i] = static_cast<double>(states[i].count()) - 30.0;
  }
  void resample(std::span<const std::uint32_t> parents) {
    std::vector<State> next;
    for (const std::uint32_t parent : parents) next.push_back(states[parent]);
    states = next;
  }
  // Thirty times: one coin is thrown again, and kept if the score stays at the level. That leaves the law
  // given the level as it is.
  deeptail::MoveStats move(double level, std::size_t k, std::uint64_t seed) {
    std::mt19937_64 random(deeptail::derived_seed(seed, k));
    deeptail::MoveStats stats{.moves = 30};
    for (State& state : states)
      for (int step = 0; step < 30; ++step) {
        State other = state;
        other[random() % 30] = random() % 2;
        if (static_cast<double>(other.count()) - 30.0 >= level) state = other;
      }
    return stats;
  }
};

int main() {
  using namespace deeptail;
  Coins pilot;
  SplittingConfig config{.n_particles = 500, .threshold = 0.0};
  const SplittingRun found = run_splitting(pilot, config, derived_seed(1, 0));
  for (const Level& level : found.levels)
    config.levels.push_back(level.level);  // frozen: the replicas are unbiased
  std::vector<SplittingRun> runs;
  for (std::uint64_t r = 1; r <= 8; ++r) {
    Coins coins;
    runs.push_back(run_splitting(coins, config, derived_seed(1, r)));
  }
  const ReplicaSummary s = combine_replicas(runs);
  std::printf("p = %.3g [%.3g, %.3g], exactly %.3g\n", std::exp(s.log_p), std::exp(s.log_low),
              std::exp(s.log_high), std::ldexp(1.0, -30));
}
