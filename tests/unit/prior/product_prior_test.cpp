#include <gtest/gtest.h>

#include <cmath>

#include "compute/normals.h"
#include "core/statistics.h"
#include "deeptail/prior.h"

namespace deeptail {
namespace {

// Kolmogorov's distance of sorted values from a distribution; sqrt(n) times it exceeds 2.23 with chance 1e-4.
template <class Cdf>
double kolmogorov(std::vector<double> x, Cdf cdf) {
  std::sort(x.begin(), x.end());
  double worst = 0.0;
  const auto n = static_cast<double>(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double f = cdf(x[i]);
    worst = std::max({worst, f - static_cast<double>(i) / n, static_cast<double>(i + 1) / n - f});
  }
  return worst * std::sqrt(n);
}

TEST(Normals, FollowTheNormalLawAndDependOnTheirPlaceAlone) {
  const RngKey key{7, Stream::kMoveNormals};
  std::vector<float> long_row(1003), short_row(130);
  std::vector<double> all;
  for (std::uint64_t index = 0; index < 40; ++index) {
    fill_normals(key, index, long_row.size(), long_row.data());
    fill_normals(key, index, short_row.size(), short_row.data());
    EXPECT_TRUE(std::equal(short_row.begin(), short_row.end(), long_row.begin()));
    all.insert(all.end(), long_row.begin(), long_row.end());
  }
  EXPECT_LT(kolmogorov(all, [&](double x) { return normal_tail(-x); }), 2.23);
  // Neighbours are the sine and cosine of one angle: uncorrelated, also when squared (5 standard errors).
  double product = 0.0, squares = 0.0;
  for (std::size_t i = 0; i + 1 < all.size(); i += 2) {
    product += all[i] * all[i + 1];
    squares += (all[i] * all[i] - 1.0) * (all[i + 1] * all[i + 1] - 1.0);
  }
  const auto pairs = static_cast<double>(all.size() / 2);
  EXPECT_LT(std::abs(product), 5.0 * std::sqrt(pairs));
  EXPECT_LT(std::abs(squares), 5.0 * 2.0 * std::sqrt(pairs));
}

TEST(ProductPrior, SamplesItsLaw) {
  for (const PriorKind kind : {PriorKind::kGaussian, PriorKind::kStudentT, PriorKind::kStudentTMatched}) {
    const std::size_t dim = 50, n = 400;
    const ProductPrior prior(kind, dim);
    AlignedVector<float> u(n * dim);
    prior.sample(3, 0, n, {u.data(), dim});
    const std::vector<double> values(u.begin(), u.end());
    const double distance = kolmogorov(values, [&](double x) {
      if (kind == PriorKind::kGaussian) return normal_tail(-x);
      return student_t_tail(-x / prior.scale(), 5);
    });
    EXPECT_LT(distance, 2.23) << name_of(kind);
    AlignedVector<float> part(10 * dim);
    prior.sample(3, 100, 10, {part.data(), dim});
    EXPECT_TRUE(std::equal(part.begin(), part.end(), u.begin() + 100 * dim));
  }
  EXPECT_NEAR(ProductPrior(PriorKind::kStudentTMatched, 1).scale(), std::sqrt(0.6), 1e-15);
}

TEST(ProductPrior, DensityAndGradientAreThoseOfTheLaw) {
  for (const PriorKind kind : {PriorKind::kGaussian, PriorKind::kStudentT, PriorKind::kStudentTMatched}) {
    const std::size_t dim = 19;
    const ProductPrior prior(kind, dim);
    AlignedVector<float> u(2 * dim), gradient(2 * dim);
    prior.sample(4, 0, 2, {u.data(), dim});
    std::vector<double> log_p(2);
    prior.log_density(2, {u.data(), dim}, log_p);
    prior.grad_log_density(2, {u.data(), dim}, {gradient.data(), dim});
    const auto one = [&](double x) {
      return kind == PriorKind::kGaussian ? -0.5 * x * x : std::log(student_t_density(x / prior.scale(), 5));
    };
    double difference = 0.0;
    for (std::size_t j = 0; j < dim; ++j) {
      difference += one(u[dim + j]) - one(u[j]);
      EXPECT_NEAR(gradient[j], (one(u[j] + 1e-4) - one(u[j] - 1e-4)) / 2e-4, 1e-5);
    }
    EXPECT_NEAR(log_p[1] - log_p[0], difference, 1e-5);
  }
}

// u -> w given u -> u' = scale g / sqrt(w) with a fresh normal g keeps the t law: it is Gibbs sampling.
TEST(ProductPrior, MixingKeepsTheLaw) {
  const std::size_t dim = 40, n = 500;
  const ProductPrior prior(PriorKind::kStudentT, dim);
  AlignedVector<float> u(n * dim);
  prior.sample(5, 0, n, {u.data(), dim});
  std::vector<float> w(dim), g(dim);
  std::vector<double> moved;
  for (std::size_t i = 0; i < n; ++i) {
    prior.sample_mixing(6, i, u.data() + i * dim, w.data());
    fill_normals({6, Stream::kMoveNormals}, i, dim, g.data());
    for (std::size_t j = 0; j < dim; ++j) moved.push_back(g[j] / std::sqrt(w[j]));
  }
  EXPECT_LT(kolmogorov(moved, [&](double x) { return student_t_tail(-x, 5); }), 2.23);
}

TEST(ProductPrior, RefusesWhatItCannotDraw) {
  EXPECT_THROW(ProductPrior(PriorKind::kStudentT, 3, 4), InputError);
  EXPECT_THROW(ProductPrior(PriorKind::kStudentT, 3, 1), InputError);
  EXPECT_THROW(ProductPrior(PriorKind::kGaussian, 0), InputError);
}

}  // namespace
}  // namespace deeptail
