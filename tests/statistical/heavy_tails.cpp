// Single runs with adaptive levels, as ga-amls makes them, on a sum of 16 Student-t coordinates (truth 2.2e-7): how far
// off their mean is and how often their intervals cover, by kernel, moves and moves for the tails.
//   heavy_tails [--seeds 40] [--threads 0] [--seconds 0] [--particles 2000] [--dim 16] [--moves 40: only these]
// One line per setting, as soon as it is known.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <mutex>

#include "deeptail/closed_form.h"
#include "many_seeds.h"
#include "splitting/continuous_particles.h"

namespace {

using namespace deeptail;

struct Setting {
  KernelKind kernel;
  std::size_t moves, tail_every;
};

struct Outcomes {
  std::vector<double> ratios;
  std::size_t covered = 0, stuck = 0;
};

void run_seed(const ClosedFormProblem& problem, const Setting& setting, std::size_t particles,
              std::uint64_t seed, ThreadPool& pool, std::mutex& mutex, Outcomes& out) {
  const ProductPrior prior(problem.prior, problem.dim);
  ClosedFormScore score(problem);
  const KernelConfig kernel{.kind = setting.kernel,
                            .moves = setting.moves,
                            .burn_in = std::min<std::size_t>(126, (setting.moves + 1) / 2),
                            .step_size = 0.1,
                            .tail_every = setting.tail_every};
  ContinuousParticles points(prior, score, kernel, pool);
  const SplittingRun run = run_splitting(points, SplittingConfig{.n_particles = particles}, seed);
  const ReplicaSummary summary = combine_replicas({&run, 1});
  double stuck = 0.0;
  for (const Level& level : run.levels) stuck = std::max(stuck, level.moves.parent_correlation);
  const std::lock_guard lock(mutex);
  out.ratios.push_back(std::exp(run.log_p - problem.log_p));
  out.covered += summary.log_low <= problem.log_p && problem.log_p <= summary.log_high;
  out.stuck += stuck > 0.8;
}

// The most wanted first: time may end.
std::vector<Setting> settings() {
  using enum KernelKind;
  return {{kMala, 900, 0}, {kMala, 900, 8}, {kMala, 40, 8},   {kMala, 40, 0},  {kPcn, 40, 0},
          {kMapla, 40, 0}, {kMala, 100, 8}, {kMala, 300, 8},  {kMala, 100, 0}, {kMala, 300, 0},
          {kRwmh, 900, 8}, {kRwmh, 900, 0}, {kMala, 100, 16}, {kMala, 100, 4}, {kMala, 900, 4},
          {kRwmh, 100, 8}, {kPcn, 900, 0},  {kMala, 3600, 0}};
}

}  // namespace

int main(int argc, char** argv) {
  std::size_t particles = 2000, dim = 16, moves = 0;
  std::vector<char*> rest = {argv[0]};
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string key = argv[i];
    if (key == "--particles")
      particles = std::stoull(argv[i + 1]);
    else if (key == "--dim")
      dim = std::stoull(argv[i + 1]);
    else if (key == "--moves")
      moves = std::stoull(argv[i + 1]);
    else
      rest.insert(rest.end(), {argv[i], argv[i + 1]});
  }
  SeedOptions usual;
  usual.seeds = 40;
  const SeedOptions o = seed_options(static_cast<int>(rest.size()), rest.data(), usual);
  const ClosedFormProblem problem =
      make_problem(EventShape::kSum, PriorKind::kStudentT, dim, 2.2e-7, KernelKind::kMala);
  const auto begin = std::chrono::steady_clock::now();
  const auto seconds = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  };
  fmt::print("kernel,moves,tail_every,seeds,mean_ratio,error,sd,covered,stuck,seconds\n");
  for (const Setting& setting : settings()) {
    if (moves > 0 && setting.moves != moves) continue;
    Outcomes answers;
    std::mutex mutex;
    const double start = seconds();
    in_parallel(o.seeds, o.threads, [&](std::size_t i, ThreadPool& pool) {
      if (o.seconds > 0.0 && seconds() > o.seconds) return false;
      run_seed(problem, setting, particles, 1 + o.first + i, pool, mutex, answers);
      return true;
    });
    const auto n = static_cast<double>(answers.ratios.size());
    if (n < 2.0) break;
    double mean = 0.0, squares = 0.0;
    for (const double r : answers.ratios) mean += r / n, squares += r * r / n;
    const double variance = std::max(0.0, squares - mean * mean);
    fmt::print("{},{},{},{},{:.4f},{:.4f},{:.3f},{},{},{:.1f}\n", name_of(setting.kernel), setting.moves,
               setting.tail_every, n, mean, std::sqrt(variance / std::max(1.0, n - 1.0)), std::sqrt(variance),
               answers.covered, answers.stuck, seconds() - start);
    std::fflush(stdout);
  }
}
