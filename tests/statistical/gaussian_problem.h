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
  p.head = Head{std::nullopt, PackedMatrix(w, p.d, p.d_vocab)};
  // Scales over a factor of 30, mixed by a random lower-triangular matrix, and a mean that favours few
  // tokens.
  p.law = {.d = p.d, .mean = std::vector<double>(p.d), .l = std::vector<double>(p.d * p.d, 0.0)};
  for (std::size_t i = 0; i < p.d; ++i) {
    p.law.mean[i] = 1.4 * normal(rng);
    for (std::size_t j = 0; j < i; ++j) p.law.l[i * p.d + j] = 0.2 * normal(rng);
    p.law.l[i * p.d + i] = std::pow(30.0, -static_cast<double>(i) / 23.0) * 1.5;
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
// Importance sampling around the centre of the accepting region: any shift is unbiased; two rounds find a
// good one.
inline GaussianTruth gaussian_truth(const GaussianProblem& problem, TokenId t, std::size_t n,
                                    std::uint64_t seed, ThreadPool& pool) {
  const HalfSpaces region = winning_region(problem.head, problem.law, t, Target({t}, problem.head), pool);
  const ShortestVector shortest = shortest_vector(region, pool);
  if (!shortest.feasible) return {};
  std::vector<double> shift = shortest.x, y(region.d);
  std::mt19937_64 rng(seed);
  std::normal_distribution<double> normal;
  GaussianTruth out;
  for (int round = 0; round < 4; ++round) {
    const std::size_t count = round < 3 ? n / 16 : n;
    double sum = 0.0, squares = 0.0, shift2 = 0.0;
    std::vector<double> centre(region.d, 0.0);
    for (const double s : shift) shift2 += s * s;
    for (std::size_t i = 0; i < count; ++i) {
      double product = 0.0;
      for (std::size_t j = 0; j < region.d; ++j) y[j] = shift[j] + normal(rng), product += y[j] * shift[j];
      bool inside = true;
      for (std::size_t k = 0; k < region.n && inside; ++k) {
        double value = region.offsets[k];
        for (std::size_t j = 0; j < region.d; ++j) value += region.normal(k)[j] * y[j];
        inside = value >= 0.0;
      }
      if (!inside) continue;
      const double weight = std::exp(0.5 * shift2 - product);
      sum += weight;
      squares += weight * weight;
      for (std::size_t j = 0; j < region.d; ++j) centre[j] += weight * y[j];
    }
    out.p = sum / static_cast<double>(count);
    out.relative_error = std::sqrt(squares) / sum;
    if (sum > 0.0)
      for (std::size_t j = 0; j < region.d; ++j) shift[j] = centre[j] / sum;
  }
  return out;
}

}  // namespace deeptail
