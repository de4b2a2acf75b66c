// Counting on the GPU against the CPU and against fp32, pair by pair, with rates: a table.
//   cuda_truth_check [--models dt-1l,..] [--dists hex,..] [--cpu 2^k] [--compare 2^k] [--time 2^k]
//                    [--near-tie X]
//   cpu        2^k inputs, one by one: the same, and the same said after them, but for ties
//   compare    2^k inputs: fp16 against fp32, and what deciding near-ties again leaves of the difference
//   time       2^k inputs: inputs per second, and the stages of a batch; 0: not timed
// Fails when inputs differ, when another token than the CPU's is said though fp32 has no tie, or when more
// than one fp16 decision in a million stays that fp32 would not make.
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "compute_cuda/dense_model.h"
#include "compute_cuda/truth_engine.h"
#include "deeptail/estimators.h"

namespace {

using namespace deeptail;

// A gap of two logits in fp32 that the order of sums may turn, and the share of wrong decisions allowed.
constexpr float kTie = 1e-4f;
constexpr double kLeft = 1e-6;

struct Settings {
  std::vector<std::string> models = {"dt-1l", "dt-2l", "dt-4l"};
  std::vector<std::string> dists = {"hex", "camel", "colon", "if", "caps", "english", "spanish", "icl"};
  int cpu = 12, compare = 18, time = 26;
  std::optional<float> near_tie;  // without it, what counting uses
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

struct Pair {
  std::string name, dist_name;
  Transformer model = Transformer::load(find_model(name));
  Distribution dist = load_distribution(dist_name);
  cuda::DenseModel dense = cuda::dense_model(model);
  cuda::DenseInputs inputs = cuda::dense_inputs(dist);
  cuda::TruthEngine engine{dense, inputs, 1, {}};  // as users have it
  cuda::TruthEngine bare{dense, inputs, 1, {}};    // without the second look at near-ties
};

// Calls visit(first, n) for batches that cover 2^log_n inputs.
template <class Visit>
std::size_t in_batches(int log_n, const Pair& pair, const Visit& visit) {
  const std::size_t n = std::size_t{1} << log_n;
  for (std::size_t first = 0; first < n; first += pair.engine.batch())
    visit(first, std::min(n - first, pair.engine.batch()));
  return n;
}

// Inputs, and what is said after them, against the CPU's. Where it differs, fp32 must have had two logits
// next to each other.
int check_against_cpu(const Settings& s, Pair& pair, ThreadPool& pool) {
  std::size_t wrong_inputs = 0, otherwise = 0, differ = 0;
  float worst = 0.0f;
  InputRunner runner(pair.model, pair.dist, 1, pool);
  const std::size_t n = in_batches(s.cpu, pair, [&](std::size_t first, std::size_t now) {
    const std::span<const TokenId> said = runner.run(first, now);
    const std::vector<std::uint32_t> rows = pair.engine.sampled_rows(first, now);
    for (std::size_t i = 0, k = 0; i < now; ++i)
      for (const TokenId token : runner.input(i))
        wrong_inputs += pair.inputs.row_token[rows[k++]] != static_cast<std::uint32_t>(token);
    const cuda::Decisions gpu = pair.engine.decide(first, now), exact = pair.engine.decide_exact(first, now);
    otherwise += pair.engine.said(first, now) != gpu.said;
    for (std::size_t i = 0; i < now; ++i) {
      if (gpu.said[i] == static_cast<std::uint32_t>(said[i])) continue;
      ++differ;
      worst = std::max(worst, exact.gap[i]);
    }
  });
  fmt::print(" | inputs {} | cpu/gpu differ {}/{} worst gap {:.1e}{}", wrong_inputs == 0 ? "same" : "WRONG",
             differ, n, worst, otherwise == 0 ? "" : " | said WRONG");
  return wrong_inputs > 0 || otherwise > 0 || worst > kTie;
}

// fp16 against fp32, and what the second look leaves.
int check_rounding(const Settings& s, Pair& pair) {
  std::size_t differ = 0, left = 0;
  float worst_gap = 0.0f, worst_change = 0.0f;
  double square_change = 0.0;
  const std::size_t n = in_batches(s.compare, pair, [&](std::size_t first, std::size_t now) {
    const cuda::Decisions fast = pair.bare.decide(first, now), exact = pair.engine.decide_exact(first, now),
                          checked = pair.engine.decide(first, now);
    for (std::size_t i = 0; i < now; ++i) {
      left += checked.said[i] != exact.said[i];
      const bool differs = fast.said[i] != exact.said[i];
      const float change = differs ? fast.gap[i] + exact.gap[i] : std::abs(fast.gap[i] - exact.gap[i]);
      worst_change = std::max(worst_change, change);
      square_change += static_cast<double>(change) * change;
      if (differs) ++differ, worst_gap = std::max(worst_gap, fast.gap[i]);
    }
  });
  fmt::print(" | fp16/fp32 differ {:.2e} largest gap {:.4f} change rms {:.4f} max {:.4f} left {}",
             static_cast<double>(differ) / static_cast<double>(n), worst_gap,
             std::sqrt(square_change / static_cast<double>(n)), worst_change, left);
  return static_cast<double>(left) > kLeft * static_cast<double>(n);
}

void print_rates(const Settings& s, Pair& pair) {
  const std::uint64_t n = std::uint64_t{1} << s.time;
  std::vector<std::uint64_t> counts(pair.model.config().d_vocab);
  const auto rate = [&](cuda::TruthEngine& engine) {
    engine.count(0, engine.batch()), engine.collect(counts);  // warm
    const Seconds clock;
    engine.count(0, n), engine.collect(counts);
    return 1e-6 * static_cast<double>(n) / clock.spent();
  };
  const double bare = rate(pair.bare), engine = rate(pair.engine);
  const auto stages = pair.engine.time_stages(0);
  const double ns = 1e9 / static_cast<double>(pair.engine.batch());
  fmt::print(
      " | M/s {:.1f} with near-ties {:.1f} | ns/input sample {:.2f} blocks {:.2f} tail {:.2f} near {:.2f}",
      bare, engine, stages.sample * ns, stages.blocks * ns, stages.tail * ns, stages.near * ns);
}

// Returns the number of failures.
int check_pair(const Settings& s, const std::string& name, const std::string& dist_name, ThreadPool& pool) {
  Pair pair{name, dist_name};
  const float near_tie = s.near_tie ? *s.near_tie : pair.engine.usual_near_tie();
  pair.engine.set_near_tie(near_tie);
  fmt::print("{:6} {:8} | near-ties {:.4f}", name, dist_name, near_tie);
  const int failures = check_against_cpu(s, pair, pool) + check_rounding(s, pair);
  if (s.time > 0) print_rates(s, pair);
  fmt::print("\n");
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
