// A head and activations of any size from a simple law, for checks and timings.
#pragma once

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "deeptail/activations.h"

namespace deeptail {

struct SyntheticProblem {
  Head head;
  Activations activations;
};

// Activations are Gaussian: a mean of N(0, 1) and directions of random orientation whose variances fall like
// 1 / (1 + j), of the mean's size in all. Columns of W_U are N(0, 0.1^2), so logits spread by 2 at d 512.
inline SyntheticProblem synthetic_problem(std::size_t d, std::size_t d_vocab, std::size_t n,
                                          std::uint64_t seed, ThreadPool& pool) {
  std::mt19937_64 rng(seed);
  std::normal_distribution<float> normal;
  const auto draws = [&](std::size_t count, float scale) {
    std::vector<float> out(count);
    for (float& x : out) x = scale * normal(rng);
    return out;
  };
  SyntheticProblem p;
  p.head.w_u = PackedMatrix(draws(d * d_vocab, 0.1f), d, d_vocab, draws(d_vocab, 0.1f));
  p.head.ln_final = LayerNorm{AlignedVector<float>(d, 1.0f), AlignedVector<float>(d, 0.0f)};
  for (float& w : p.head.ln_final->weight) w += 0.1f * normal(rng);
  for (float& b : p.head.ln_final->bias) b += 0.1f * normal(rng);
  std::vector<float> directions = draws(d * d, 1.0f);  // row j: N(0, I) times sqrt(variance j / sum)
  double sum = 0.0;
  for (std::size_t j = 0; j < d; ++j) sum += 1.0 / static_cast<double>(1 + j);
  for (std::size_t j = 0; j < d; ++j)
    for (std::size_t k = 0; k < d; ++k)
      directions[j * d + k] *= static_cast<float>(std::sqrt(1.0 / (static_cast<double>(1 + j) * sum)));
  const PackedMatrix mix(directions, d, d, draws(d, 1.0f));
  const std::vector<float> z = draws(n * d, 1.0f);
  p.activations = {.n = n, .d_model = d, .values = AlignedVector<float>(n * d)};
  constexpr std::size_t kBlock = 256;
  pool.for_each_block((n + kBlock - 1) / kBlock, [&](std::size_t block, std::size_t) {
    const std::size_t first = block * kBlock;
    gemm(std::min(kBlock, n - first), {z.data() + first * d, d}, mix,
         {p.activations.values.data() + first * d, d});
  });
  return p;
}

// Tokens by their logit at the mean activation, the largest first.
inline std::vector<TokenId> ranked_tokens(const SyntheticProblem& p, ThreadPool& pool) {
  const std::size_t d = p.head.d_model();
  std::vector<float> mean(d, 0.0f), values(p.head.d_vocab());
  for (std::size_t i = 0; i < p.activations.n; ++i)
    for (std::size_t j = 0; j < d; ++j)
      mean[j] += p.activations.rows().row(i)[j] / static_cast<float>(p.activations.n);
  logits(p.head, 1, {mean.data(), d}, pool, {values.data(), values.size()});
  std::vector<TokenId> order(values.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](TokenId a, TokenId b) {
    return values[static_cast<std::size_t>(a)] > values[static_cast<std::size_t>(b)];
  });
  return order;
}
inline TokenId ranked_token(const SyntheticProblem& p, std::size_t rank, ThreadPool& pool) {
  return ranked_tokens(p, pool)[rank];
}

}  // namespace deeptail
