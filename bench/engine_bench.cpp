// Times the engine on one model and checks its answers first. Called by bench/engine_vs_pytorch, which makes
// the files.
//   engine_bench MODEL_DIR TOKENS.npy [n, length] LOGITS.npy [n, d_vocab] THREADS
// Prints one JSON object: inputs per second of the full forward, re-scored changes per second, GEMM peak,
// errors.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <nlohmann/json.hpp>

#include "deeptail/model.h"

namespace deeptail {
namespace {

template <class Body>
double best_seconds(int repeats, Body body) {
  double best = INFINITY;
  for (int i = 0; i < repeats; ++i) {
    const auto start = std::chrono::steady_clock::now();
    body();
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  return best;
}

struct Run {
  const Transformer& model;
  std::vector<TokenId> tokens;
  std::size_t length;
  ThreadPool& pool;
  std::size_t n() const { return tokens.size() / length; }
  TokenBatch batch() const { return {tokens, length}; }
};

// Floating-point operations that the forward pass does for one input, to the logits.
double needed_flops(const ModelConfig& c, std::size_t length) {
  if (!c.arch.keys_are_still()) return forward_flops(c, length);
  const double n = static_cast<double>(length), d = static_cast<double>(c.d_model),
               a = static_cast<double>(c.d_attn());
  const double mlp = 4 * d * static_cast<double>(c.d_mlp);
  const double full = n * (8 * d * a + mlp) + 2 * n * n * a;  // causal scores and sums: half of 4 n^2 a
  const double last = 8 * d * a + mlp + 4 * n * d * static_cast<double>(c.n_heads);
  return static_cast<double>(c.n_layers - 1) * full + last + 2 * d * static_cast<double>(c.d_vocab);
}

double gemm_peak(ThreadPool& pool) {
  const std::size_t m = 96, k = 512, n = 512, blocks = 64;
  const std::vector<float> values(k * n, 0.5f);
  const PackedMatrix w(values, k, n);
  AlignedVector<float> a(m * k, 0.5f), c(pool.size() * m * n);
  const double seconds = best_seconds(5, [&] {
    pool.for_each_block(blocks, [&](std::size_t, std::size_t worker) {
      gemm(m, {a.data(), k}, w, {c.data() + worker * m * n, n});
    });
  });
  return 2.0 * static_cast<double>(m * k * n * blocks) / seconds;
}

// Inputs per second by the clock and by the time that threads ran.
struct ForwardRate {
  double by_clock, by_cpu;
};
ForwardRate forward_rate(const Run& run, const Tensor& expected, double& max_error) {
  const ModelConfig& c = run.model.config();
  AlignedVector<float> resid(run.n() * c.d_model), out(run.n() * c.d_vocab);
  const auto forward = [&] {
    final_residuals(run.model, run.batch(), run.pool, {resid.data(), c.d_model});
    logits(run.model.head(), run.n(), {resid.data(), c.d_model}, run.pool, {out.data(), c.d_vocab});
  };
  forward();
  const std::vector<float> truth = to_float(expected);
  for (std::size_t i = 0; i < truth.size(); ++i)
    max_error = std::max(max_error, static_cast<double>(std::abs(truth[i] - out[i])));
  double used = INFINITY;
  const double seconds = best_seconds(5, [&] {
    const std::clock_t start = std::clock();
    forward();
    used = std::min(used, static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC);
  });
  return {static_cast<double>(run.n()) / seconds, static_cast<double>(run.n()) / used};
}

// One step: every slot proposes a new token at one random position (never the first) and keeps it if its
// margin stays above a level that about half of the inputs exceed.
struct RescoreResult {
  double rate, accepted, logits_per_proposal;
  std::size_t wrong_decisions;
};
RescoreResult rescore_rate(const Run& run) {
  const ModelConfig& c = run.model.config();
  const std::size_t n = run.n(), d = c.d_model;
  Rescorer rescorer(run.model, n, run.length, run.pool);
  AlignedVector<float> resid(n * d);
  rescorer.reset(run.batch(), {resid.data(), d});
  const Target target({static_cast<TokenId>(c.d_vocab / 2)}, run.model.head());
  std::vector<TokenId> winners(n);
  argmax(run.model.head(), n, {resid.data(), d}, run.pool, winners);
  const MarginTest test(run.model.head(), target, winners);
  std::vector<MarginTest::ScratchPtr> scratch;
  for (std::size_t i = 0; i < run.pool.size(); ++i) scratch.push_back(test.make_scratch());
  std::vector<Margin> margin(n);
  margins(run.model.head(), target, n, {resid.data(), d}, run.pool, margin);
  std::vector<float> sorted;
  for (const Margin& m : margin) sorted.push_back(m.value);
  std::nth_element(sorted.begin(), sorted.begin() + static_cast<std::ptrdiff_t>(n / 2), sorted.end());
  const float level = sorted[n / 2];
  for (std::size_t i = 0, from = 0; i < n; ++i) {
    if (margin[i].value >= level) continue;
    while (margin[from].value < level) from = (from + 1) % n;
    rescorer.copy_slot(from, i);
    from = (from + 1) % n;
  }

  std::vector<TokenId> proposed(run.tokens.size());
  std::vector<Rescorer::Proposal> proposals(n);
  std::vector<std::uint8_t> decisions(n);
  std::vector<std::uint64_t> computed(run.pool.size(), 0);
  std::uint64_t state = 1;
  const auto draw = [&] { return (state = state * 6364136223846793005ull + 1442695040888963407ull) >> 33; };
  const auto step = [&] {
    for (std::size_t i = 0; i < n; ++i) {
      std::copy_n(rescorer.tokens(i).begin(), run.length,
                  proposed.begin() + static_cast<std::ptrdiff_t>(i * run.length));
      proposed[i * run.length + 1 + draw() % (run.length - 1)] = static_cast<TokenId>(draw() % c.d_vocab);
      proposals[i] = {i, proposed.data() + i * run.length};
    }
    rescorer.propose(proposals, [&](std::size_t first, std::size_t count, ConstRows rows,
                                    std::span<std::uint8_t> accept, std::size_t worker) {
      computed[worker] += test.at_least(level, count, rows, accept, *scratch[worker]);
      std::copy(accept.begin(), accept.end(), decisions.begin() + static_cast<std::ptrdiff_t>(first));
    });
  };
  RescoreResult result{};
  for (int check = 0; check < 2; ++check) {
    step();
    final_residuals(run.model, {proposed, run.length}, run.pool, {resid.data(), d});
    margins(run.model.head(), target, n, {resid.data(), d}, run.pool, margin);
    for (std::size_t i = 0; i < n; ++i) {
      result.wrong_decisions += (margin[i].value >= level) != (decisions[i] != 0);
      result.accepted += decisions[i] / static_cast<double>(2 * n);
    }
  }
  std::fill(computed.begin(), computed.end(), 0);
  const int steps = 8;
  const double seconds = best_seconds(1, [&] {
    for (int i = 0; i < steps; ++i) step();
  });
  std::uint64_t total = 0;
  for (const auto value : computed) total += value;
  result.rate = steps * static_cast<double>(n) / seconds;
  result.logits_per_proposal = static_cast<double>(total) / (steps * static_cast<double>(n));
  return result;
}

int run_main(char** argv) {
  const Transformer model = Transformer::load(argv[1]);
  const Tensor token_file = read_tensors(argv[2]).at("");
  const std::vector<std::int64_t> ids = to_int64(token_file);
  ThreadPool pool(std::stoul(argv[4]));
  const Run run{model, {ids.begin(), ids.end()}, static_cast<std::size_t>(token_file.shape[1]), pool};
  double max_error = 0.0;
  const double peak = gemm_peak(pool);
  const ForwardRate forward = forward_rate(run, read_tensors(argv[3]).at(""), max_error);
  const RescoreResult rescored = rescore_rate(run);
  const nlohmann::json out = {
      {"forward_per_s", forward.by_clock},
      {"forward_per_cpu_s", forward.by_cpu},
      {"max_logit_error", max_error},
      {"gemm_peak_gflops", peak / 1e9},
      {"forward_gflop", needed_flops(model.config(), run.length) / 1e9},
      {"rescore_per_s", rescored.rate},
      {"accepted", rescored.accepted},
      {"logits_per_proposal", rescored.logits_per_proposal},
      {"wrong_decisions", rescored.wrong_decisions},
      {"simd", simd_name()},
  };
  std::puts(out.dump().c_str());
  return 0;
}

}  // namespace
}  // namespace deeptail

int main(int argc, char** argv) {
  if (argc != 5)
    return std::fputs("usage: engine_bench MODEL_DIR TOKENS.npy LOGITS.npy THREADS\n", stderr), 2;
  try {
    return deeptail::run_main(argv);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "engine_bench: %s\n", e.what());
    return 1;
  }
}
