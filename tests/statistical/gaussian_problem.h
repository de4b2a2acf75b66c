// Gaussian activations of dimension 24 and a vocabulary of 96, with probabilities known by importance
// sampling: here the activation-space methods have no model error, so what is left is their own.
#pragma once

#include <algorithm>
#include <cmath>
#include <random>

#include "deeptail/qld.h"
#include "estimators/cloud.h"
#include "estimators/shortest_vector.h"

namespace deeptail {

struct GaussianProblem {
  std::size_t d = 24, d_vocab = 96;
  Head head;
  Whitening law;  // the true mean and factor
  Activations activations;
};

inline GaussianProblem make_gaussian_problem(std::size_t n, std::uint64_t seed) {
  std::mt19937_64 rng(seed);
  std::normal_distribution<double> normal;
  GaussianProblem p;
  std::vector<float> w(p.d * p.d_vocab);
  for (float& x : w) x = static_cast<float>(normal(rng) / std::sqrt(24.0));
  for (std::size_t k = 0; k < p.d_vocab; ++k) {  // tokens with short columns are rare
    const auto length = static_cast<float>(std::exp(0.3 * normal(rng)));
    for (std::size_t i = 0; i < p.d; ++i) w[i * p.d_vocab + k] *= length;
  }
  p.head = Head{std::nullopt, PackedMatrix(w, p.d, p.d_vocab)};
  // Scales over a factor of 3, mixed by a random lower-triangular matrix, and a mean that favours few
  // tokens.
  p.law = {.d = p.d, .mean = std::vector<double>(p.d), .l = std::vector<double>(p.d * p.d, 0.0)};
  for (std::size_t i = 0; i < p.d; ++i) {
    p.law.mean[i] = 0.7 * normal(rng);
    for (std::size_t j = 0; j < i; ++j) p.law.l[i * p.d + j] = 0.2 * normal(rng);
    p.law.l[i * p.d + i] = std::pow(3.0, -static_cast<double>(i) / 23.0) * 1.5;
  }
  p.activations = {.n = n, .d_model = p.d, .values = AlignedVector<float>(n * p.d)};
  std::vector<double> u(p.d);
  for (std::size_t i = 0; i < n; ++i) {
    for (double& x : u) x = normal(rng);
    const std::vector<double> x = times_l(p.law, u);
    for (std::size_t j = 0; j < p.d; ++j)
      p.activations.values[i * p.d + j] = static_cast<float>(p.law.mean[j] + x[j]);
  }
  return p;
}

struct GaussianTruth {
  double p = 0.0, relative_error = 0.0;
};
// Line sampling: directions orthogonal to the shortest accepting vector are drawn, the probability along it
// is exact. Unbiased.
inline GaussianTruth gaussian_truth(const GaussianProblem& problem, TokenId t, std::size_t n,
                                    std::uint64_t seed, ThreadPool& pool) {
  const HalfSpaces region = winning_region(problem.head, problem.law, t, Target({t}, problem.head), pool);
  const ShortestVector shortest = shortest_vector(region, pool);
  if (!shortest.feasible || shortest.length() == 0.0) return {};
  std::vector<double> along(region.n, 0.0), unit = shortest.x, b(region.d);
  for (double& x : unit) x /= shortest.length();
  for (std::size_t k = 0; k < region.n; ++k)
    for (std::size_t j = 0; j < region.d; ++j) along[k] += region.normal(k)[j] * unit[j];
  const auto upper_tail = [](double x) { return 0.5 * std::erfc(x / std::sqrt(2.0)); };
  std::mt19937_64 rng(seed);
  std::normal_distribution<double> normal;
  double sum = 0.0, squares = 0.0;
  for (std::size_t i = 0; i < n; ++i) {
    double part = 0.0, low = -40.0, high = 40.0;
    for (std::size_t j = 0; j < region.d; ++j) b[j] = normal(rng), part += b[j] * unit[j];
    for (std::size_t j = 0; j < region.d; ++j) b[j] -= part * unit[j];
    for (std::size_t k = 0; k < region.n && low < high; ++k) {
      double value = region.offsets[k];
      for (std::size_t j = 0; j < region.d; ++j) value += region.normal(k)[j] * b[j];
      if (along[k] > 0.0)
        low = std::max(low, -value / along[k]);
      else
        high = std::min(high, -value / along[k]);
    }
    const double p = low < high ? upper_tail(low) - upper_tail(high) : 0.0;
    sum += p;
    squares += p * p;
  }
  const auto count = static_cast<double>(n);
  return {sum / count,
          std::sqrt(std::max(0.0, squares / count - std::pow(sum / count, 2.0)) / count) / (sum / count)};
}

}  // namespace deeptail
