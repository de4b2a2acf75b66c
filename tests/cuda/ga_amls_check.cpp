// ga-amls on the GPU against the CPU.
//   cuda_ga_amls_check [--seeds 12] [--full 1]     a table; --full: also at d_model 512
// Fails when scores differ by more than 1e-3, when a level of moves with the same numbers accepts differently
// beyond chance or leaves less than 90% of the particles at the same place, when targets that are estimated side by
// side get another number than alone, or when estimates differ in law
// (4 standard errors; with 10 comparisons a false alarm has a chance of 6e-4).
#include <fmt/core.h>

#include <cstdlib>
#include <map>
#include <string>

#include "deeptail/device.h"
#include "deeptail/ga_amls.h"
#include "estimators/ga_amls/device_particles.h"
#include "estimators/head_score.h"
#include "splitting/continuous_particles.h"
#include "synthetic_head.h"

namespace {

using namespace deeptail;

using Settings = std::map<std::string, std::string>;
std::size_t count_of(const Settings& s, const std::string& key, std::size_t usual) {
  const auto found = s.find(key);
  return found == s.end() ? usual : static_cast<std::size_t>(std::atoll(found->second.c_str()));
}

// What both kinds of particles are made from.
struct Parts {
  const SyntheticProblem& problem;
  Target target;
  GroupedCloud groups;
  Whitening law;
  Screen screen;

  Parts(const SyntheticProblem& p, std::vector<TokenId> ids, bool grouped, ThreadPool& pool)
      : problem(p), target(std::move(ids), p.head), screen(p.head, 0, {}, pool) {
    if (grouped) groups = group_activations(p.activations, 16, 1e-6, pool);
    law = grouped ? groups.whitening
                  : whitening(moments(p.activations.n, p.activations.d_model, p.activations.rows(), pool));
  }
};

struct Kinds {
  PriorKind prior = PriorKind::kStudentT;
  KernelKind kernel = KernelKind::kMala;
  bool grouped = false, plain = false;
  std::size_t tail_every = 0;
};

struct Pair {
  ProductPrior prior;
  HeadScore score;
  KernelConfig kernel;
  ContinuousParticles<HeadScore> cpu;
  DevicePopulations on_gpu;
  DeviceParticles gpu;

  Pair(Parts& parts, const Kinds& kinds, std::size_t n, std::size_t moves, ThreadPool& pool)
      : prior(kinds.prior, parts.problem.head.d_model()),
        score(parts.problem.head, parts.target, parts.law, parts.groups.means, parts.screen, pool),
        kernel{.kind = kinds.kernel,
               .moves = moves,
               .burn_in = moves / 2,
               .step_size = 0.05,
               .tail_every = kinds.tail_every},
        cpu(prior, score, kernel, pool, parts.groups.cumulative),
        on_gpu({.head = parts.problem.head,
                .whitening = parts.law,
                .group_means = parts.groups.means,
                .prior = prior,
                .kernel = kernel,
                .cumulative = parts.groups.cumulative,
                .plain = kinds.plain},
               {.particles = n, .target = parts.target.ids().size()}),
        gpu(on_gpu, parts.target, pool) {}
};

double largest_difference(std::span<const double> a, std::span<const double> b) {
  double most = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double difference = std::abs(a[i] - b[i]);
    most = difference <= most ? most : difference;  // a NaN stays
  }
  return most;
}

// Scores of the same draws, and one level of moves with the same numbers. Returns the number of failures.
int check_moves(Parts& parts, const Kinds& kinds, std::size_t n, std::size_t moves, ThreadPool& pool) {
  Pair pair(parts, kinds, n, moves, pool);
  std::vector<double> on_cpu(n), on_gpu(n);
  pair.cpu.sample(n, 7), pair.gpu.sample(n, 7);
  pair.cpu.scores(on_cpu), pair.gpu.scores(on_gpu);
  const double before = largest_difference(on_cpu, on_gpu);
  const double level = choose_level(on_cpu, 2 * n / 5, -1e300, 1e300);
  std::vector<std::uint32_t> survivors;
  for (std::size_t i = 0; i < n; ++i)
    if (on_cpu[i] >= level && on_gpu[i] >= level) survivors.push_back(static_cast<std::uint32_t>(i));
  const auto parents = resample(survivors, n, Resampling::kSystematic, 7, 0);
  pair.cpu.resample(parents), pair.gpu.resample(parents);
  const MoveStats cpu = pair.cpu.move(level, 0, 7), gpu = pair.gpu.move(level, 0, 7);
  pair.gpu.scores(on_gpu);
  const std::size_t d = pair.prior.dim();
  const ConstRows a = pair.cpu.rows(), b = pair.gpu.rows();
  std::size_t same = 0, below = 0;
  for (std::size_t i = 0; i < n; ++i) {
    double most = 0.0;
    for (std::size_t j = 0; j < d; ++j)
      most = std::max(most, static_cast<double>(std::abs(a.row(i)[j] - b.row(i)[j])));
    same += most < 1e-2;
    below += !(on_gpu[i] >= level);
  }
  // The scores of the GPU's particles, by the CPU.
  std::vector<double> again(n);
  if (!kinds.grouped) pair.score.evaluate(n, b, {}, again);
  const double after = kinds.grouped ? 0.0 : largest_difference(again, on_gpu);
  // Particles that share a parent are alike: one number per particle, at most.
  const double allowed = 4.0 * std::sqrt(0.5 / static_cast<double>(n));
  const bool failed = !(before < 1e-3) || !(after < 1e-3) || below > 0 || 10 * same < 9 * n ||
                      !(std::abs(cpu.acceptance() - gpu.acceptance()) < allowed);
  fmt::print(
      "d {:4} vocab {:6} {:17} {:5} {:7} | scores differ by {:.1e}, after moves {:.1e} | acceptance {:.4f} "
      "{:.4f} | h {:.5f} {:.5f} | jump {:.4f} {:.4f} | same particles {:.3f} below {} {}\n",
      d, parts.problem.head.d_vocab(), name_of(kinds.prior), name_of(kinds.kernel),
      kinds.grouped          ? "grouped"
      : kinds.plain          ? "plain"
      : kinds.tail_every > 0 ? "tails"
                             : "",
      before, after, cpu.acceptance(), gpu.acceptance(), cpu.step_size, gpu.step_size, cpu.mean_squared_jump,
      gpu.mean_squared_jump, static_cast<double>(same) / static_cast<double>(n), below,
      failed ? "FAILED" : "");
  std::fflush(stdout);
  return failed;
}

struct Moments2 {
  double mean = 0.0, error = 0.0;  // of the mean
};
Moments2 mean_of(const std::vector<double>& x) {
  double sum = 0.0, squares = 0.0;
  for (const double v : x) sum += v;
  const auto n = static_cast<double>(x.size());
  for (const double v : x) squares += (v - sum / n) * (v - sum / n);
  return {sum / n, std::sqrt(squares / (n - 1.0) / n)};
}

GaAmlsConfig quick_config(GaPrior prior) {
  GaAmlsConfig config{.prior = prior, .start = GaStart::kPrior, .n_particles = 500};
  config.kernel.moves = 60;
  config.kernel.burn_in = 20;
  config.kernel.step_size = 0.05;
  return config;
}

// Estimates of log p with different seeds on both, and the exact value where it is known.
int check_law(const char* name, const SyntheticProblem& p, const Target& target, GaAmlsConfig config,
              const double* exact, std::size_t seeds, ThreadPool& pool) {
  std::vector<double> found[2];
  std::size_t levels = 0;
  for (const Device device : {Device::kCpu, Device::kCuda})
    for (std::size_t i = 0; i < seeds; ++i) {
      config.device = device;
      config.seed = 1 + i + 1000 * static_cast<std::size_t>(device == Device::kCuda);
      const Estimate e = ga_amls(p.head, p.activations, target, config, pool);
      found[device == Device::kCuda].push_back(e.log_p);
      levels = e.levels.size();
    }
  const Moments2 cpu = mean_of(found[0]), gpu = mean_of(found[1]);
  const double z = (gpu.mean - cpu.mean) / std::hypot(gpu.error, cpu.error);
  // log p is low by half its variance, and adaptive levels are high by about a level's relative variance
  // each.
  double z_exact = 0.0;
  if (exact != nullptr) {
    const double low = 0.5 * static_cast<double>(seeds) * gpu.error * gpu.error,
                 high = 1.5 * static_cast<double>(levels) / static_cast<double>(config.n_particles);
    z_exact = (gpu.mean + low - high - *exact) / gpu.error;
  }
  const bool failed = !(std::abs(z) < 4.0) || !(std::abs(z_exact) < 4.0);
  fmt::print("{:34} | log p cpu {:.3f} +- {:.3f}  gpu {:.3f} +- {:.3f}  z {:+.2f}", name, cpu.mean, cpu.error,
             gpu.mean, gpu.error, z);
  if (exact != nullptr) fmt::print("  exact {:.3f} z {:+.2f}", *exact, z_exact);
  fmt::print(" | {} levels {}\n", levels, failed ? "FAILED" : "");
  std::fflush(stdout);
  return failed;
}

// Two tokens and no norm: the margin is linear in u, so the Gaussian prior's probability is a normal tail.
int check_exact(std::size_t seeds, ThreadPool& pool) {
  SyntheticProblem p = synthetic_problem(24, 2, 4000, 5, pool);
  p.head.ln_final.reset();
  const Whitening law =
      whitening(moments(p.activations.n, p.activations.d_model, p.activations.rows(), pool));
  double offset = 0.0, squares = 0.0;
  std::vector<double> g(24, 0.0);
  const auto w = [&](std::size_t k) {
    return static_cast<double>(p.head.w_u.at(k, 0)) - static_cast<double>(p.head.w_u.at(k, 1));
  };
  for (std::size_t k = 0; k < 24; ++k)
    for (std::size_t j = 0; j <= k; ++j) g[j] += w(k) * law.l[k * 24 + j];
  for (const double x : g) squares += x * x;
  for (std::size_t k = 0; k < 24; ++k) offset += w(k) * law.mean[k];
  // The bias puts the event 4.5 standard deviations away.
  const double away = 4.5, bias = -away * std::sqrt(squares) - offset;
  std::vector<float> columns(48), biases = {static_cast<float>(bias), 0.0f};
  for (std::size_t k = 0; k < 24; ++k)
    for (std::size_t j = 0; j < 2; ++j) columns[2 * k + j] = p.head.w_u.at(k, j);
  p.head.w_u = PackedMatrix(columns, 24, 2, biases);
  const double exact = std::log(0.5 * std::erfc(away / std::sqrt(2.0)));
  GaAmlsConfig config = quick_config(GaPrior::kGaussian);
  config.n_particles = 2000;
  return check_law("gaussian, linear margin", p, Target({0}, p.head), config, &exact, seeds, pool);
}

// Many targets side by side against one at a time: every number must be the same.
int check_many(const SyntheticProblem& p, GaPrior prior, std::size_t n, std::size_t at_once,
               ThreadPool& pool) {
  GaAmlsConfig config = quick_config(prior);
  config.device = Device::kCuda;
  config.replicas = 2;
  config.kernel.tail_every = 8;
  std::vector<GaAmlsTask> tasks;
  const std::vector<TokenId> ranked = ranked_tokens(p, pool);
  for (std::size_t i = 0; i < n; ++i) {
    std::vector<TokenId> ids = {ranked[20 + 5 * i]};
    if (i % 4 == 3) ids.push_back(ranked[21 + 5 * i]);
    tasks.push_back({.target = Target(ids, p.head), .seed = 1 + i});
  }
  std::vector<Estimate> together(n);
  ga_amls_many(p.head, p.activations, tasks, config,
               {.on_estimate = [&](std::size_t i, Estimate e) { together[i] = std::move(e); }}, at_once,
               pool);
  std::size_t differ = 0;
  for (std::size_t i = 0; i < n; ++i) {
    config.seed = tasks[i].seed;
    const Estimate alone = ga_amls(p.head, p.activations, tasks[i].target, config, pool);
    bool same = alone.log_p == together[i].log_p && alone.log_low == together[i].log_low &&
                alone.replica_log_p == together[i].replica_log_p && alone.warnings == together[i].warnings &&
                alone.cost.score_evals == together[i].cost.score_evals &&
                alone.levels.size() == together[i].levels.size();
    for (std::size_t k = 0; same && k < alone.levels.size(); ++k)
      same = alone.levels[k].level == together[i].levels[k].level &&
             alone.levels[k].moves.accepted == together[i].levels[k].moves.accepted &&
             alone.levels[k].moves.step_size == together[i].levels[k].moves.step_size &&
             alone.levels[k].moves.parent_correlation == together[i].levels[k].moves.parent_correlation;
    differ += !same;
  }
  fmt::print("{:34} | {} targets, {} at once: {} differ from one at a time {}\n",
             fmt::format("many targets, {}", name_of(prior)), n, at_once, differ, differ > 0 ? "FAILED" : "");
  std::fflush(stdout);
  return differ > 0;
}

int check_all(const Settings& s, ThreadPool& pool) {
  int failures = 0;
  const std::size_t seeds = count_of(s, "--seeds", 12), n = count_of(s, "--particles", 600),
                    moves = count_of(s, "--moves", 60);
  SyntheticProblem small = synthetic_problem(count_of(s, "--d", 40), 500, 3000, 3, pool);
  for (std::size_t i = 0; i < small.activations.n; ++i)
    small.activations.last_tokens.push_back(static_cast<TokenId>(i % 7 * (i % 3)));
  const TokenId rare = ranked_token(small, 60, pool), other = ranked_token(small, 80, pool);
  {
    Parts parts(small, {rare}, false, pool), several(small, {rare, other}, false, pool),
        grouped(small, {rare}, true, pool);
    for (const PriorKind prior : {PriorKind::kStudentT, PriorKind::kGaussian})
      for (const KernelKind kernel :
           {KernelKind::kMala, KernelKind::kRwmh, KernelKind::kMapla, KernelKind::kPcn})
        failures += check_moves(parts, {prior, kernel}, n, moves, pool);
    failures += check_moves(several, {.prior = PriorKind::kStudentTMatched}, n, moves, pool);
    failures += check_moves(grouped, {.prior = PriorKind::kStudentTMatched, .grouped = true}, n, moves, pool);
    failures += check_moves(parts, {.plain = true}, n, moves, pool);
    failures += check_moves(parts, {.tail_every = 8}, n, moves, pool);
    failures += check_moves(parts, {.kernel = KernelKind::kRwmh, .tail_every = 3}, n, moves, pool);
  }
  if (count_of(s, "--full", 0) > 0) {
    const SyntheticProblem large = synthetic_problem(512, 48262, 4000, 4, pool);
    Parts parts(large, {ranked_token(large, 3000, pool)}, false, pool);
    for (const bool plain : {false, true}) failures += check_moves(parts, {.plain = plain}, 300, 20, pool);
    const SyntheticProblem wide = synthetic_problem(640, 3000, 4000, 4, pool);  // longer than 512
    Parts wide_parts(wide, {ranked_token(wide, 30, pool)}, false, pool);
    failures += check_moves(wide_parts, {}, 300, 20, pool);
  }
  for (const GaPrior prior : {GaPrior::kStudentT, GaPrior::kConditioned})
    failures += check_many(small, prior, 24, prior == GaPrior::kStudentT ? 24 : 7, pool);
  if (seeds == 0) return failures;
  failures += check_exact(seeds, pool);
  for (const GaPrior prior : {GaPrior::kStudentT, GaPrior::kGaussian, GaPrior::kConditioned})
    failures += check_law(fmt::format("synthetic head, {}", name_of(prior)).c_str(), small,
                          Target({rare}, small.head), quick_config(prior), nullptr, seeds, pool);
  return failures;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    Settings s;
    for (int i = 1; i + 1 < argc; i += 2) s[argv[i]] = argv[i + 1];
    ThreadPool pool;
    require_device(Device::kCuda);
    const int failures = check_all(s, pool);
    fmt::print("{} failures\n", failures);
    return failures > 0;
  } catch (const std::exception& e) {
    fmt::print(stderr, "{}\n", e.what());
    return 1;
  }
}
