// Part of cuda_tokensplit_check: populations under the law and under components of a mixture, against the CPU
// and beside each other.
#pragma once

#include <thread>

#include "check_settings.h"
#include "estimators/tokensplit/on_cuda.h"
#include "estimators/tokensplit/place.h"
#include "estimators/tokensplit/strata.h"
#include "unit/estimators/fixed_moves.h"
#include "unit/estimators/some_plants.h"

namespace deeptail {

inline MoveSettings usual_moves(const TokenProblem& problem) {
  const std::vector<std::size_t> free = problem.free_parts();
  std::vector<double> weights(problem.n_parts(), 0.0);
  for (const std::size_t i : free) weights[i] = 1.0;
  return {.cumulative = cumulative_of(weights),
          .block = std::min<std::size_t>(4, free.size()),
          .block_share = 0.25,
          .suffix_share = 0.1};
}

struct MovedPopulation {
  std::vector<TokenId> tokens;  // [n, length]
  MoveStats stats;
};

// A population above the median margin of its sample, moved where it lives.
template <class Place>
MovedPopulation moved(const Place& place, std::size_t n, std::size_t steps, ThreadPool& pool) {
  FixedMoves policy(usual_moves(place.problem), steps);
  auto particles = place.population(n, policy, pool);
  particles.sample(n, 21);
  std::vector<double> scores(n);
  particles.scores(scores);
  std::vector<double> sorted = scores;
  std::nth_element(sorted.begin(), sorted.begin() + static_cast<std::ptrdiff_t>(n / 2), sorted.end());
  const double level = sorted[n / 2];
  std::vector<std::uint32_t> above, parents;
  for (std::uint32_t i = 0; i < n; ++i)
    if (scores[i] >= level) above.push_back(i);
  for (std::size_t i = 0; i < n; ++i) parents.push_back(above[i % above.size()]);
  particles.resample(parents);
  MovedPopulation out;
  out.stats = particles.move(level, 3, 22);
  out.tokens.assign(particles.inputs().tokens.begin(), particles.inputs().tokens.end());
  return out;
}

inline int compare_populations(const char* law, const MovedPopulation& cpu, const MovedPopulation& gpu,
                               std::size_t length) {
  const std::size_t n = cpu.tokens.size() / length;
  std::size_t same = 0;
  for (std::size_t i = 0; i < n; ++i)
    same += std::equal(cpu.tokens.begin() + static_cast<std::ptrdiff_t>(i * length),
                       cpu.tokens.begin() + static_cast<std::ptrdiff_t>((i + 1) * length),
                       gpu.tokens.begin() + static_cast<std::ptrdiff_t>(i * length));
  fmt::print(
      "  particles, {}: {} of {} identical after {} moves; proposed {} and {}, accepted {} and {} (CPU, "
      "GPU)\n",
      law, same, n, cpu.stats.moves, cpu.stats.proposed, gpu.stats.proposed, cpu.stats.accepted,
      gpu.stats.accepted);
  return static_cast<double>(same) < 0.99 * static_cast<double>(n);
}

// Several of each population at once, under laws that are added and removed meanwhile. Returns how many differ
// from those that were alone.
inline std::size_t differing_in_company(const ServedPlace& place, const Mixture& mixture,
                                        const std::vector<MovedPopulation>& alone, std::size_t n,
                                        std::size_t steps) {
  constexpr std::size_t kThreads = 12, kRounds = 4;
  std::atomic<std::size_t> differ = 0;
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      ThreadPool pool(1);
      for (std::size_t round = 0; round < kRounds; ++round) {
        const std::size_t which = (t + round) % alone.size();
        const auto found = which == 0 ? moved(place, n, steps, pool)
                                      : moved(place.under(mixture, which - 1), n, steps, pool);
        differ += found.tokens != alone[which].tokens ||
                  found.stats.proposed != alone[which].stats.proposed ||
                  found.stats.accepted != alone[which].stats.accepted;
      }
    });
  for (std::thread& thread : threads) thread.join();
  fmt::print("  company: {} of {} populations differ from what they were alone\n", differ.load(),
             kThreads * kRounds);
  return differ;
}

inline int check_particles(const Settings& s, const Asked& asked, ThreadPool& pool) {
  const std::size_t n = s.count("--particles"), steps = s.count("--steps");
  if (n == 0 || steps == 0) return 0;
  const auto device = make_cuda_particles(asked.model.transformer, asked.dist);
  ParticleService service(*device);
  const TokenTables law(asked.dist);
  const NextToken event(Target({some_targets(s, asked, 1, pool).at(0).token}, asked.model.head()));
  const TokenProblem problem{asked.model.transformer, law, event};
  const CpuPlace cpu{problem};
  const ServedPlace gpu{problem, service};
  const Distribution raised = flattened(asked.dist);
  const Mixture mixture(
      asked.dist,
      {{.name = "flattened", .share = 0.5, .tables = raised},
       {.name = "planted", .share = 0.5, .tables = raised, .plants = some_plants(asked.dist, 1000)}});
  int failures = 0;
  std::vector<MovedPopulation> alone = {moved(gpu, n, steps, pool)};
  failures += compare_populations("the law", moved(cpu, n, steps, pool), alone[0], asked.dist.length());
  for (std::size_t c = 0; c < mixture.size(); ++c) {
    alone.push_back(moved(gpu.under(mixture, c), n, steps, pool));
    failures +=
        compare_populations(mixture.component(c).name.c_str(), moved(cpu.under(mixture, c), n, steps, pool),
                            alone.back(), asked.dist.length());
  }
  return failures + (differing_in_company(gpu, mixture, alone, n, steps) > 0);
}

}  // namespace deeptail
