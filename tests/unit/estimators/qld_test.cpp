#include "deeptail/qld.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "estimators/cloud.h"
#include "estimators/line_counts.h"

namespace deeptail {
namespace {

struct CloudProblem {
  Head head;
  Activations activations;
};

// Gaussian activations with a mean, and a random unembedding without ln_final.
CloudProblem gaussian(std::size_t n, std::size_t d, std::size_t d_vocab, std::uint64_t seed) {
  std::mt19937_64 rng(seed);
  std::normal_distribution<float> normal;
  std::vector<float> w(d * d_vocab);
  for (float& x : w) x = normal(rng);
  CloudProblem p{Head{std::nullopt, PackedMatrix(w, d, d_vocab)},
                 {.n = n, .d_model = d, .values = AlignedVector<float>(n * d)}};
  for (std::size_t i = 0; i < n * d; ++i)
    p.activations.values[i] = 0.3f + (1.0f + static_cast<float>(i % d)) * 0.5f * normal(rng);
  return p;
}

bool accepts(const Head& head, const Target& target, std::span<const double> x) {
  const std::vector<double> z = logit_slopes(head, x);
  double best_target = -1e300, best_other = -1e300;
  for (std::size_t k = 0; k < z.size(); ++k) {
    const bool in = std::binary_search(target.ids().begin(), target.ids().end(), static_cast<TokenId>(k));
    (in ? best_target : best_other) = std::max(in ? best_target : best_other, z[k]);
  }
  return best_target >= best_other;
}

// Every recombination, one by one.
double by_hand(const CloudProblem& p, const Target& target, std::span<const double> direction,
               const Whitening& w) {
  const std::size_t n = p.activations.n, d = w.d;
  const std::vector<double> dual = w.dual_direction(direction), move = times_l(w, direction);
  std::vector<double> a(n, 0.0), x(d);
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j < d; ++j) a[i] += dual[j] * (p.activations.rows().row(i)[j] - w.mean[j]);
  double count = 0.0;
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t k = 0; k < n; ++k) {
      for (std::size_t j = 0; j < d; ++j) x[j] = p.activations.rows().row(k)[j] + (a[i] - a[k]) * move[j];
      count += accepts(p.head, target, x);
    }
  return count / static_cast<double>(n * n);
}

TEST(Qld, CountsEveryRecombination) {
  ThreadPool pool(2);
  const CloudProblem p = gaussian(150, 4, 21, 1);
  for (const auto& ids : {std::vector<TokenId>{3}, {20}, {2, 7, 11}}) {
    const Target target(ids, p.head);
    const Estimate e = qld(p.head, p.activations, target, {.n_blocks = 5}, pool);
    const Whitening w = whitening(moments(150, 4, p.activations.rows(), pool));
    std::vector<double> direction;
    double shortest = 1e300;
    for (const TokenId t : ids) {
      const ShortestVector found = shortest_vector(winning_region(p.head, w, t, target, pool), pool);
      if (!found.feasible || found.length() >= shortest) continue;
      shortest = found.length();
      direction = found.x;
      for (double& x : direction) x /= shortest;
    }
    // fp32 logits may decide a borderline pair of 22500 otherwise.
    EXPECT_NEAR(std::exp(e.log_p), by_hand(p, target, direction, w), 3.0 / 22500);
    EXPECT_EQ(e.guarantee, Guarantee::kModelBased);
    EXPECT_LE(e.log_low, e.log_p);
    EXPECT_GE(e.log_high, e.log_p);
  }
}

TEST(Qld, IsTheSameForAnyNumberOfThreads) {
  const CloudProblem p = gaussian(1000, 6, 40, 2);
  const Target target({5}, p.head);
  ThreadPool one(1), two(2), seven(7);
  const Estimate e = qld(p.head, p.activations, target, {}, one);
  for (ThreadPool* pool : {&two, &seven}) {
    const Estimate other = qld(p.head, p.activations, target, {}, *pool);
    EXPECT_EQ(e.log_p, other.log_p);
    EXPECT_EQ(e.log_low, other.log_low);
  }
}

TEST(Qld, AZeroComesWithABound) {
  ThreadPool pool(1);
  CloudProblem p = gaussian(200, 3, 5, 3);
  // Tokens 0 and 1 are x0 and -x0, token 2 is half of token 0 and a little less: never the largest.
  std::vector<float> w(3 * 5, 0.0f);
  w[0] = 1.0f, w[1] = -1.0f, w[2] = 0.5f, w[5 + 3] = 1.0f, w[10 + 4] = 1.0f;
  p.head = Head{std::nullopt, PackedMatrix(w, 3, 5, std::vector<float>{0, 0, -0.1f, 0, 0})};
  const Estimate e = qld(p.head, p.activations, Target({2}, p.head), {}, pool);
  EXPECT_EQ(e.status, Status::kNotReachedUpperBound);
  EXPECT_EQ(std::exp(e.log_p), 0.0);
  EXPECT_GT(e.log_high, std::log(1e-3));
  EXPECT_FALSE(e.warnings.empty());
}

TEST(Gld, IsTheNormalTailOfTheLogitDifference) {
  ThreadPool pool(1);
  const CloudProblem p = gaussian(400, 4, 30, 4);
  const Target target({6}, p.head);
  const Estimate e = gld(p.head, p.activations, target, pool);
  double mean = 0.0, squares = 0.0;
  std::vector<double> differences;
  for (std::size_t i = 0; i < 400; ++i) {
    const std::vector<double> x(p.activations.rows().row(i), p.activations.rows().row(i) + 4);
    const std::vector<double> z = logit_slopes(p.head, x);
    differences.push_back(z[6] - *std::max_element(z.begin(), z.end()));
    mean += differences.back() / 400;
  }
  for (const double x : differences) squares += (x - mean) * (x - mean);
  const double expected = 0.5 * std::erfc(-mean / std::sqrt(squares / 399) / std::sqrt(2.0));
  EXPECT_NEAR(std::exp(e.log_p), expected, 1e-5 * expected);
  EXPECT_LT(e.log_low, e.log_p);
  EXPECT_GT(e.log_high, e.log_p);
}

TEST(Gld, WithoutSpreadItCounts) {
  ThreadPool pool(1);
  const CloudProblem p = gaussian(400, 4, 30, 4);
  std::vector<TokenId> said(400);
  argmax(p.head, 400, p.activations.rows(), pool, said);
  std::sort(said.begin(), said.end());
  said.erase(std::unique(said.begin(), said.end()), said.end());
  ASSERT_LT(said.size(), 30u);
  const Estimate e = gld(p.head, p.activations, Target(said, p.head), pool);
  EXPECT_EQ(e.status, Status::kOk);
  EXPECT_EQ(e.log_p, 0.0);
  EXPECT_LT(e.log_low, 0.0);
  EXPECT_EQ(e.log_high, 0.0);
}

TEST(ActivationMethods, RefuseWrongShapes) {
  ThreadPool pool(1);
  const CloudProblem p = gaussian(50, 4, 10, 5), wide = gaussian(50, 5, 10, 5), few = gaussian(4, 4, 10, 5);
  const Target target({1}, p.head);
  EXPECT_THROW(qld(p.head, wide.activations, target, {}, pool), InputError);
  EXPECT_THROW(qld(p.head, few.activations, target, {}, pool), InputError);
  EXPECT_THROW(gld(p.head, wide.activations, target, pool), InputError);
  EXPECT_THROW(qld_arc(p.head, p.activations, Target({1, 2}, p.head), {}, pool), InputError);
  EXPECT_THROW(qld(p.head, p.activations, target, {.n_blocks = 1}, pool), InputError);
}

}  // namespace
}  // namespace deeptail
