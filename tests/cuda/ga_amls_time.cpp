// Seconds of ga-amls for one target at the paper's setting, as JSON.
//   cuda_ga_amls_time [--rank 3000] [--write DIR] [--stages 1] [--device cuda] [--many 0] [--at-once 64]
//                     [--d 512] [--vocab 48262] [--activations 20000] [--particles 2000] [--moves 900]
//                     [--tail-every 0]
// The target is the token of that rank by its logit at the mean activation. --write: head and activations,
// for bench/ga_amls_vs_pytorch.py. --many: one more line, for that many targets, side by side, and some of them alone,
// in the same run; fails when their numbers differ. --stages: lines with the parts of a move, by the way of other devices
// than Hopper, and of 1, 4, 16, .. populations up to the number.
#include <fmt/core.h>

#include <chrono>
#include <cstdlib>
#include <map>
#include <string>

#include "compute_cuda/activation_engine.h"
#include "deeptail/ga_amls.h"
#include "estimators/ga_amls/device_particles.h"
#include "synthetic_head.h"

namespace {

using namespace deeptail;

using Settings = std::map<std::string, std::string>;
std::size_t count_of(const Settings& s, const std::string& key, std::size_t usual) {
  const auto found = s.find(key);
  return found == s.end() ? usual : static_cast<std::size_t>(std::atoll(found->second.c_str()));
}

// Microseconds of the parts of a move of several populations, after a burn-in.
void print_stages(const SyntheticProblem& p, TokenId id, const GaAmlsConfig& config, std::size_t populations,
                  bool plain, ThreadPool& pool) {
  const std::size_t n = config.n_particles;
  const Target target({id}, p.head);
  const Whitening law =
      whitening(moments(p.activations.n, p.activations.d_model, p.activations.rows(), pool));
  const ProductPrior prior(PriorKind::kStudentT, p.head.d_model());
  DevicePopulations all({.head = p.head,
                         .whitening = law,
                         .group_means = {},
                         .prior = prior,
                         .kernel = config.kernel,
                         .cumulative = {},
                         .plain = plain},
                        {.populations = populations, .particles = n});
  std::vector<cuda::LevelMoves> levels;
  double scored = 0.0;
  std::vector<std::unique_ptr<DeviceParticles>> kept;
  for (std::size_t i = 0; i < all.room(); ++i) {
    DeviceParticles& particles = *kept.emplace_back(std::make_unique<DeviceParticles>(all, target, pool));
    std::vector<double> scores(n);
    particles.sample(n, 1 + i), particles.scores(scores);
    const double level = choose_level(scores, 2 * n / 5, -1e300, 1e300);
    std::vector<std::uint32_t> survivors;
    for (std::size_t k = 0; k < n; ++k)
      if (scores[k] >= level) survivors.push_back(static_cast<std::uint32_t>(k));
    particles.resample(resample(survivors, n, Resampling::kSystematic, 1, 0));
    particles.rows();  // copies are made at the next use
    levels.push_back(
        {.slot = particles.slot(), .level = static_cast<float>(level), .seed = 1 + i, .step_size = 1e-3});
  }
  cuda::MoveSchedule schedule{.moves = 200, .burn_in = 200, .adaptation = 0.1, .wanted = 0.57};
  const auto adapted = all.engine().move(schedule, levels);
  for (std::size_t i = 0; i < levels.size(); ++i)
    levels[i].number = 1, levels[i].step_size = adapted[i].step_size;
  schedule = {.moves = 100, .burn_in = 0};
  for (const cuda::MovesDone& done : all.engine().move(schedule, levels))
    scored += static_cast<double>(done.scored);
  for (cuda::LevelMoves& level : levels) level.number = 2;
  const auto t = all.engine().time_stages(schedule, levels);
  fmt::print(
      "{{\"populations\": {}, \"plain\": {}, \"candidates_per_move\": {:.1f}, \"microseconds\": "
      "{{\"propose\": {:.1f}, "
      "\"unwhiten\": {:.1f}, "
      "\"normalise\": {:.1f}, \"maxima\": {:.1f}, \"settle\": {:.1f}}}}}\n",
      all.room(), plain, scored / 100.0, t.propose * 1e6, t.unwhiten * 1e6, t.normalise * 1e6, t.maxima * 1e6,
      t.settle * 1e6);
  std::fflush(stdout);
}

// Targets of neighbouring ranks, all at once; some of them again alone, which must give the same.
int time_many(const SyntheticProblem& p, std::size_t rank, std::size_t n, std::size_t at_once,
              GaAmlsConfig config, ThreadPool& pool) {
  std::vector<GaAmlsTask> tasks;
  const std::vector<TokenId> ranked = ranked_tokens(p, pool);
  for (std::size_t i = 0; i < n; ++i)
    tasks.push_back({.target = Target({ranked[rank + i]}, p.head), .seed = 1 + i});
  std::vector<Estimate> found(n);
  const auto seconds_since = [](std::chrono::steady_clock::time_point start) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  auto start = std::chrono::steady_clock::now();
  ga_amls_many(p.head, p.activations, tasks, config,
               {.on_estimate = [&](std::size_t i, Estimate e) { found[i] = std::move(e); }}, at_once, pool);
  const double together = seconds_since(start);
  constexpr std::size_t kAlone = 3;
  std::size_t levels = 0, alone_levels = 0, same = 0;
  for (const Estimate& e : found) levels += e.levels.size();
  start = std::chrono::steady_clock::now();
  for (std::size_t i = 0; i < std::min(kAlone, n); ++i) {
    config.seed = tasks[i].seed;
    const Estimate e = ga_amls(p.head, p.activations, tasks[i].target, config, pool);
    same += e.log_p == found[i].log_p && e.cost.score_evals == found[i].cost.score_evals;
    alone_levels += e.levels.size();
  }
  const double alone = seconds_since(start);
  const double per_level = together / static_cast<double>(levels),
               per_level_alone = alone / static_cast<double>(alone_levels);
  fmt::print(
      "{{\"targets\": {}, \"at_once\": {}, \"seconds\": {:.3f}, \"targets_per_second\": {:.2f}, \"levels\": "
      "{}, "
      "\"seconds_per_level\": {:.5f}, \"alone\": {{\"targets\": {}, \"seconds\": {:.3f}, "
      "\"seconds_per_level\": {:.5f}, "
      "\"same_numbers\": {}}}, \"ratio\": {:.2f}}}\n",
      n, at_once, together, static_cast<double>(n) / together, levels, per_level, std::min(kAlone, n), alone,
      per_level_alone, same, per_level_alone / per_level);
  std::fflush(stdout);
  return same == std::min(kAlone, n) ? 0 : 1;
}

// One target at the paper's setting. The first run warms the device up; the second is timed.
int time_target(const Settings& s, ThreadPool& pool) {
  const SyntheticProblem p = synthetic_problem(count_of(s, "--d", 512), count_of(s, "--vocab", 48262),
                                               count_of(s, "--activations", 20000), 4, pool);
  const TokenId id = ranked_token(p, count_of(s, "--rank", 3000), pool);
  if (const auto folder = s.find("--write"); folder != s.end()) {
    save_head(folder->second + "/head.safetensors", p.head);
    write_activations(folder->second + "/activations.npy", p.activations);
  }
  GaAmlsConfig config;
  config.n_particles = count_of(s, "--particles", 2000);
  config.kernel.moves = count_of(s, "--moves", 900);
  config.kernel.tail_every = count_of(s, "--tail-every", 0);
  config.kernel.burn_in = std::min<std::size_t>(126, config.kernel.moves / 2);
  config.device = *value_named<Device>(s.contains("--device") ? s.at("--device") : "cuda");
  GaAmlsConfig warm = config;
  warm.max_levels = 2;
  warm.kernel.moves = warm.kernel.burn_in = 20;
  ga_amls(p.head, p.activations, Target({id}, p.head), warm, pool);
  // Seconds from the end of one level to that of the next: all but the fit and the last scores.
  double first = 0.0, last = 0.0;
  const auto start = std::chrono::steady_clock::now();
  const auto look = [&](const Progress& progress) {
    if (progress.note.empty()) return true;
    last = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    if (progress.done == 1) first = last;
    return true;
  };
  const Estimate e = ga_amls(p.head, p.activations, Target({id}, p.head), config, pool, look);
  const double moved = static_cast<double>(e.levels.size()) - 1.0;
  double acceptance = 0.0;
  for (const Level& level : e.levels) acceptance += level.moves.acceptance() / std::max(1.0, moved);
  fmt::print(
      "{{\"target\": {}, \"levels\": {}, \"seconds\": {:.4f}, \"seconds_before_the_first_level\": "
      "{:.4f}, \"seconds_per_level\": {:.4f}, \"log10_p\": {:.3f}, \"acceptance\": {:.3f}, "
      "\"score_evals\": {}, \"step_size\": {:.5f}}}\n",
      id, e.levels.size(), e.cost.seconds, first, moved > 0.0 ? (last - first) / moved : 0.0,
      e.log_p / std::log(10.0), acceptance, e.cost.score_evals,
      e.levels.size() < 2 ? 0.0 : e.levels[e.levels.size() - 2].moves.step_size);
  std::fflush(stdout);
  int failed = 0;
  if (const std::size_t n = count_of(s, "--many", 0); n > 0)
    failed = time_many(p, count_of(s, "--rank", 3000), n, count_of(s, "--at-once", kGaTargetsAtOnce), config,
                       pool);
  if (s.contains("--stages")) {
    print_stages(p, id, config, 1, true, pool);
    for (std::size_t n = 1; n <= count_of(s, "--stages", 1); n *= 4)
      print_stages(p, id, config, n, false, pool);
  }
  return failed;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    Settings s;
    for (int i = 1; i + 1 < argc; i += 2) s[argv[i]] = argv[i + 1];
    ThreadPool pool;
    return time_target(s, pool);
  } catch (const std::exception& e) {
    fmt::print(stderr, "{}\n", e.what());
    return 1;
  }
}
