#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "deeptail/activations.h"

namespace deeptail {
namespace {

// [n, d] with correlated columns of different scales.
Activations correlated(std::size_t n, std::size_t d, std::uint64_t seed) {
  std::mt19937_64 rng(seed);
  std::normal_distribution<float> normal;
  Activations a{.n = n, .d_model = d, .values = AlignedVector<float>(n * d)};
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j < d; ++j)
      a.values[i * d + j] = 3.0f + (j > 0 ? 0.7f * a.values[i * d + j - 1] : 0.0f) +
                            std::pow(10.0f, -static_cast<float>(j % 4)) * normal(rng);
  return a;
}

TEST(Moments, AreThoseOfTheDefinition) {
  ThreadPool pool(2);
  for (const std::size_t n : {7u, 40u, 333u}) {
    const std::size_t d = 5;
    const Activations a = correlated(n, d, 1);
    const Moments m = moments(n, d, a.rows(), pool);
    for (std::size_t i = 0; i < d; ++i) {
      double mean = 0.0;
      for (std::size_t r = 0; r < n; ++r) mean += a.values[r * d + i] / static_cast<double>(n);
      EXPECT_NEAR(m.mean[i], mean, 1e-12 * std::abs(mean));
    }
    for (std::size_t i = 0; i < d; ++i)
      for (std::size_t j = 0; j < d; ++j) {
        double sum = 0.0;
        for (std::size_t r = 0; r < n; ++r)
          sum +=
              (a.values[r * d + i] - m.mean[i]) * (a.values[r * d + j] - m.mean[j]) / static_cast<double>(n);
        EXPECT_NEAR(m.covariance[i * d + j], sum, 1e-12);
      }
  }
}

TEST(Moments, AreTheSameForAnyNumberOfThreads) {
  const Activations a = correlated(1000, 9, 2);
  ThreadPool one(1), two(2), seven(7);
  const Moments m = moments(a.n, a.d_model, a.rows(), one);
  for (ThreadPool* pool : {&two, &seven}) {
    const Moments other = moments(a.n, a.d_model, a.rows(), *pool);
    EXPECT_EQ(m.mean, other.mean);
    EXPECT_EQ(m.covariance, other.covariance);
  }
}

TEST(Whitening, GivesUnitCovarianceAndComesBack) {
  ThreadPool pool(2);
  const Activations a = correlated(5000, 6, 3);
  const Whitening w = whitening(moments(a.n, a.d_model, a.rows(), pool), 1e-12);
  EXPECT_FALSE(w.singular);
  EXPECT_EQ(ridge_warning(w), "");
  AlignedVector<float> u(a.values.size()), back(a.values.size());
  w.whiten(a.n, a.rows(), {u.data(), 6});
  const Moments m = moments(a.n, 6, {u.data(), 6}, pool);
  for (std::size_t i = 0; i < 6; ++i)
    for (std::size_t j = 0; j < 6; ++j) EXPECT_NEAR(m.covariance[i * 6 + j], i == j ? 1.0 : 0.0, 1e-4);
  gemm(a.n, {u.data(), 6}, w.unwhitening(), {back.data(), 6});
  for (std::size_t i = 0; i < a.values.size(); ++i) EXPECT_NEAR(back[i], a.values[i], 1e-4);
}

TEST(Whitening, DualDirectionReadsACoordinate) {
  ThreadPool pool(1);
  const Activations a = correlated(500, 4, 4);
  const Whitening w = whitening(moments(a.n, 4, a.rows(), pool), 1e-9);
  const std::vector<double> direction = {0.5, -0.5, 0.5, 0.5};
  const std::vector<double> dual = w.dual_direction(direction);
  AlignedVector<float> u(a.values.size());
  w.whiten(a.n, a.rows(), {u.data(), 4});
  for (std::size_t i = 0; i < a.n; ++i) {
    double along = 0.0, read = 0.0;
    for (std::size_t j = 0; j < 4; ++j) {
      along += direction[j] * u[i * 4 + j];
      read += dual[j] * (a.values[i * 4 + j] - w.mean[j]);
    }
    EXPECT_NEAR(along, read, 1e-4);
  }
}

TEST(Whitening, ASingularCovarianceGetsAStatedRidge) {
  ThreadPool pool(1);
  Activations a = correlated(500, 4, 5);
  for (std::size_t i = 0; i < a.n; ++i) a.values[i * 4 + 3] = 2.0f * a.values[i * 4 + 1];
  const Whitening w = whitening(moments(a.n, 4, a.rows(), pool), 1e-6);
  EXPECT_TRUE(w.singular);
  EXPECT_GT(w.ridge, 0.0);
  EXPECT_NE(ridge_warning(w).find("singular"), std::string::npos);
  EXPECT_THROW(whitening(moments(a.n, 4, a.rows(), pool), -1.0), InputError);
}

void refused(const Activations& a, std::size_t d_model, const std::string& part) {
  try {
    check_activations(a, d_model, "a.npy");
    FAIL() << part;
  } catch (const InputError& e) {
    EXPECT_EQ(std::string(e.what()).rfind("a.npy: ", 0), 0u) << e.what();
    EXPECT_NE(std::string(e.what()).find(part), std::string::npos) << e.what();
  }
}

TEST(CheckActivations, SaysWhatIsWrong) {
  const Activations good = correlated(100, 4, 6);
  EXPECT_NO_THROW(check_activations(good, 4, "a.npy"));
  refused(good, 8, "width 4");
  refused(correlated(4, 4, 6), 4, "more rows than columns");
  Activations constant = good;
  for (std::size_t i = 0; i < 100; ++i) constant.values[i * 4 + 2] = 1.5f;
  refused(constant, 4, "column 2 is 1.5");
  Activations nan = good;
  nan.values[4 * 10 + 1] = std::nanf("");
  refused(nan, 4, "activation 10");
}

}  // namespace
}  // namespace deeptail
