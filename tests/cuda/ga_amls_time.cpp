// Seconds of ga-amls for one target at the paper's setting, as JSON.
//   cuda_ga_amls_time [--rank 3000] [--write DIR] [--stages 1] [--device cuda]
//                     [--d 512] [--vocab 48262] [--activations 20000] [--particles 2000] [--moves 900]
// The target is the token of that rank by its logit at the mean activation. --write: head and activations,
// for bench/ga_amls_vs_pytorch.py. --stages: two more lines, with the parts of a move, by
// Hopper's way and by that of other devices.
#include <fmt/core.h>

#include <chrono>
#include <cstdlib>
#include <map>
#include <string>

#include "compute_cuda/activation_engine.h"
#include "deeptail/ga_amls.h"
#include "estimators/device_particles.h"
#include "synthetic_head.h"

namespace {

using namespace deeptail;

using Settings = std::map<std::string, std::string>;
std::size_t count_of(const Settings& s, const std::string& key, std::size_t usual) {
  const auto found = s.find(key);
  return found == s.end() ? usual : static_cast<std::size_t>(std::atoll(found->second.c_str()));
}

// Microseconds of the parts of a move, after a burn-in.
void print_stages(const SyntheticProblem& p, TokenId id, const GaAmlsConfig& config, bool plain,
                  ThreadPool& pool) {
  const std::size_t n = config.n_particles;
  const Target target({id}, p.head);
  const Whitening law =
      whitening(moments(p.activations.n, p.activations.d_model, p.activations.rows(), pool));
  const ProductPrior prior(PriorKind::kStudentT, p.head.d_model());
  DeviceParticles particles({.head = p.head,
                             .target = target,
                             .whitening = law,
                             .group_means = {},
                             .prior = prior,
                             .kernel = config.kernel,
                             .cumulative = {},
                             .plain = plain},
                            n, pool);
  std::vector<double> scores(n);
  particles.sample(n, 1), particles.scores(scores);
  const double level = choose_level(scores, 2 * n / 5, -1e300, 1e300);
  std::vector<std::uint32_t> survivors;
  for (std::size_t i = 0; i < n; ++i)
    if (scores[i] >= level) survivors.push_back(static_cast<std::uint32_t>(i));
  particles.resample(resample(survivors, n, Resampling::kSystematic, 1, 0));
  const MoveStats moved = particles.move(level, 0, 1);
  const auto before = particles.score_evals();
  particles.move(level, 1, 1);
  const auto t = particles.engine().time_stages({.level = static_cast<float>(level),
                                                 .number = 2,
                                                 .seed = 1,
                                                 .moves = 100,
                                                 .burn_in = 0,
                                                 .step_size = moved.step_size});
  fmt::print(
      "{{\"plain\": {}, \"candidates_per_move\": {:.1f}, \"microseconds\": {{\"propose\": {:.1f}, "
      "\"unwhiten\": {:.1f}, "
      "\"normalise\": {:.1f}, \"maxima\": {:.1f}, \"settle\": {:.1f}}}}}\n",
      plain, static_cast<double>(particles.score_evals() - before) / static_cast<double>(config.kernel.moves),
      t.propose * 1e6, t.unwhiten * 1e6, t.normalise * 1e6, t.maxima * 1e6, t.settle * 1e6);
}

// One target at the paper's setting. The first run warms the device up; the second is timed.
void time_target(const Settings& s, ThreadPool& pool) {
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
  if (!s.contains("--stages")) return;
  config.kernel.moves = 200;
  for (const bool plain : {false, true}) print_stages(p, id, config, plain, pool);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    Settings s;
    for (int i = 1; i + 1 < argc; i += 2) s[argv[i]] = argv[i + 1];
    ThreadPool pool;
    time_target(s, pool);
    return 0;
  } catch (const std::exception& e) {
    fmt::print(stderr, "{}\n", e.what());
    return 1;
  }
}
