// Pointwise SPB losses per second on one core, next to the paper's closed form written down as it stands.
// Each benchmark first checks that it computes the same loss where the closed form can be trusted.
#include <benchmark/benchmark.h>

#include <cmath>
#include <vector>

#include "deeptail/loss.h"

namespace {

using deeptail::SpbParameters;

constexpr std::size_t kPairs = 4096;  // fits the L1 and L2 caches: this measures arithmetic

struct Batch {
  std::vector<double> q, p, loss;  // [kPairs]
};

// Truths over 1e-9 .. 1e-5, estimates off by up to a factor 100, every 16th one zero.
Batch make_batch() {
  Batch batch;
  for (std::size_t i = 0; i < kPairs; ++i) {
    const double t = static_cast<double>(i);
    batch.q.push_back(std::pow(10.0, -9.0 + 4.0 * t / kPairs));
    batch.p.push_back(i % 16 == 0 ? 0.0 : batch.q.back() * std::exp(4.6 * std::sin(12.9898 * t)));
  }
  batch.loss.resize(kPairs);
  return batch;
}

// Eq. Beps_closed, for alpha other than 1 and 2. Accurate only away from p = q.
double textbook(const SpbParameters& s, double q, double p) {
  const double y = q + s.epsilon, z = p + s.epsilon, b = 2.0 - s.alpha, a = 1.0 - s.alpha;
  return (std::pow(z, b) - std::pow(y, b)) / b - y * (std::pow(z, a) - std::pow(y, a)) / a;
}

bool check(benchmark::State& state, const SpbParameters& s, const Batch& batch) {
  for (std::size_t i = 0; i < kPairs; ++i) {
    const double expected = textbook(s, batch.q[i], batch.p[i]);
    const bool trusted = std::abs(std::log((batch.p[i] + s.epsilon) / batch.q[i])) > 0.5;
    if (trusted && !(std::abs(batch.loss[i] - expected) <= 1e-12 * expected)) {
      state.SkipWithError("the loss differs from the closed form");
      return false;
    }
  }
  return true;
}

SpbParameters parameters(const benchmark::State& state) {
  return {.alpha = static_cast<double>(state.range(0)) / 100.0, .gamma = 0.0, .epsilon = 1e-13};
}

void spb(benchmark::State& state) {
  const SpbParameters s = parameters(state);
  Batch batch = make_batch();
  spb_pointwise(s, batch.q, batch.p, batch.loss);
  if (!check(state, s, batch)) return;
  for (auto _ : state) {
    spb_pointwise(s, batch.q, batch.p, batch.loss);
    benchmark::DoNotOptimize(batch.loss.data());
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(kPairs));
}

void closed_form(benchmark::State& state) {
  const SpbParameters s = parameters(state);
  Batch batch = make_batch();
  for (auto _ : state) {
    for (std::size_t i = 0; i < kPairs; ++i) batch.loss[i] = textbook(s, batch.q[i], batch.p[i]);
    benchmark::DoNotOptimize(batch.loss.data());
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(kPairs));
}

// The argument is 100 alpha.
BENCHMARK(spb)->Arg(150)->Arg(250)->Arg(400);
BENCHMARK(closed_form)->Arg(150)->Arg(250)->Arg(400);

}  // namespace
