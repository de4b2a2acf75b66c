// Counting on the GPU against the CPU and against fp32, pair by pair, with rates: a table.
//   cuda_truth_check [--models dt-1l,..] [--dists hex,..] [--cpu 2^k] [--compare 2^k] [--time 2^k]
// Fails when inputs differ, when fp32 decisions differ from the CPU's beyond rounding, or when near-ties
// leave an fp16 decision that fp32 would not make.
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <string>
#include <vector>

#include "compute_cuda/dense_model.h"
#include "compute_cuda/truth_engine.h"
#include "deeptail/estimators.h"

namespace {

using namespace deeptail;

struct Settings {
  std::vector<std::string> models = {"dt-1l", "dt-2l", "dt-4l"};
  std::vector<std::string> dists = {"hex", "camel", "colon", "if", "caps", "english", "spanish", "icl"};
  int cpu = 12, compare = 18, time = 26;
  float near_tie = 0.04f;
};

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> parts(1);
  for (const char c : text)
    if (c == ',')
      parts.emplace_back();
    else
      parts.back() += c;
  return parts;
}

Settings parse(int argc, char** argv) {
  Settings s;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string flag = argv[i], value = argv[i + 1];
    if (flag == "--models") s.models = split(value);
    if (flag == "--dists") s.dists = split(value);
    if (flag == "--cpu") s.cpu = std::atoi(value.c_str());
    if (flag == "--compare") s.compare = std::atoi(value.c_str());
    if (flag == "--time") s.time = std::atoi(value.c_str());
    if (flag == "--near-tie") s.near_tie = static_cast<float>(std::atof(value.c_str()));
  }
  return s;
}

struct Seconds {
  std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();
  double spent() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }
};

// Returns the number of failures.
int check_pair(const Settings& s, const std::string& name, const std::string& dist_name, ThreadPool& pool) {
  const Transformer model = Transformer::load(find_model(name));
  const Distribution dist = load_distribution(dist_name);
  const cuda::DenseInputs inputs = cuda::dense_inputs(dist);
  const cuda::DenseModel dense = cuda::dense_model(model);
  cuda::TruthEngine engine(dense, inputs, 1, {.near_tie = s.near_tie});
  int failures = 0;

  const std::size_t n_cpu = std::size_t{1} << s.cpu, length = dist.length();
  std::vector<TokenId> tokens(n_cpu * length);
  sample_range(dist, 1, 0, pool, tokens);
  const std::vector<std::uint32_t> rows = engine.sampled_rows(0, n_cpu);
  std::size_t wrong_inputs = 0;
  for (std::size_t i = 0; i < tokens.size(); ++i)
    wrong_inputs += inputs.row_token[rows[i]] != static_cast<std::uint32_t>(tokens[i]);
  InputRunner runner(model, dist, 1, pool);
  const auto said = runner.run(0, n_cpu);
  const cuda::Decisions exact = engine.decide_exact(0, n_cpu);
  std::size_t differ_cpu = 0;
  float worst_cpu = 0.0f;
  for (std::size_t i = 0; i < n_cpu; ++i)
    if (exact.said[i] != static_cast<std::uint32_t>(said[i])) {
      ++differ_cpu;
      worst_cpu = std::max(worst_cpu, exact.gap[i]);
    }
  failures += wrong_inputs > 0 || worst_cpu > 1e-4f;

  // fp16 decisions without the second look.
  cuda::TruthEngine bare(dense, inputs, 1, {.near_tie = 0.0f});
  const std::size_t n = std::size_t{1} << s.compare;
  std::size_t differ = 0, left = 0;
  float worst_gap = 0.0f, worst_change = 0.0f;
  double square_change = 0.0;
  const float bounds[] = {0.005f, 0.01f, 0.02f, 0.04f, 0.08f};
  std::size_t below[5] = {}, done = 0;
  for (; done < n; done += std::min(n, bare.batch())) {
    const std::size_t now = std::min(n, bare.batch());
    const cuda::Decisions fast = bare.decide(done, now), all = engine.decide_exact(done, now),
                          checked = engine.decide(done, now);
    for (std::size_t i = 0; i < now; ++i) {
      for (int b = 0; b < 5; ++b) below[b] += fast.gap[i] <= bounds[b];
      left += checked.said[i] != all.said[i];
      const bool differs = fast.said[i] != all.said[i];
      const float change = differs ? fast.gap[i] + all.gap[i] : std::abs(fast.gap[i] - all.gap[i]);
      worst_change = std::max(worst_change, change);
      square_change += static_cast<double>(change) * change;
      if (differs) ++differ, worst_gap = std::max(worst_gap, fast.gap[i]);
    }
  }
  failures += left > 0;

  std::vector<std::uint64_t> counts(model.config().d_vocab);
  engine.count(0, engine.batch()), engine.collect(counts);  // warm
  double rate[2];
  const std::uint64_t n_time = std::uint64_t{1} << s.time;
  for (int which = 0; which < 2; ++which) {
    cuda::TruthEngine& timed = which == 0 ? bare : engine;
    const Seconds clock;
    timed.count(0, n_time), timed.collect(counts);
    rate[which] = static_cast<double>(n_time) / clock.spent();
  }
  const auto stages = engine.time_stages(0);
  const double us = 1e9 / static_cast<double>(engine.batch());
  fmt::print(
      "{:6} {:8} | inputs {} | cpu/fp32 differ {}/{} worst gap {:.1e} | fp16/fp32 differ {:.2e} largest gap "
      "{:.4f} change rms "
      "{:.4f} max {:.4f} left {} | below",
      name, dist_name, wrong_inputs == 0 ? "same" : "WRONG", differ_cpu, n_cpu, worst_cpu,
      static_cast<double>(differ) / static_cast<double>(done), worst_gap,
      std::sqrt(square_change / static_cast<double>(done)), worst_change, left);
  for (const std::size_t b : below) fmt::print(" {:.4f}", static_cast<double>(b) / static_cast<double>(done));
  fmt::print(
      " | M/s {:.1f} with near-ties {:.1f} | ns/input sample {:.2f} blocks {:.2f} tail {:.2f} near {:.2f}\n",
      rate[0] * 1e-6, rate[1] * 1e-6, stages.sample * us, stages.blocks * us, stages.tail * us,
      stages.near * us);
  std::fflush(stdout);
  return failures;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const Settings s = parse(argc, argv);
    fmt::print("{}\n", cuda::device_name());
    ThreadPool pool;
    int failures = 0;
    for (const std::string& model : s.models)
      for (const std::string& dist : s.dists) failures += check_pair(s, model, dist, pool);
    fmt::print("{} failures\n", failures);
    return failures > 0;
  } catch (const std::exception& e) {
    fmt::print(stderr, "{}\n", e.what());
    return 1;
  }
}
