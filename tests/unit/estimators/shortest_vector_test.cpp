#include "estimators/shortest_vector.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace deeptail {
namespace {

HalfSpaces random_polyhedron(std::size_t n, std::size_t d, double lift, std::uint64_t seed) {
  std::mt19937_64 rng(seed);
  std::normal_distribution<double> normal;
  HalfSpaces out{n, d, std::vector<double>(n * d), std::vector<double>(n)};
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j < d; ++j) out.normals[i * d + j] = normal(rng) + (j == 0 ? lift : 0.0);
    out.offsets[i] = normal(rng) - 1.0;
  }
  return out;
}

// Hildreth's dual coordinate ascent: slow, simple, converges to the same point.
std::vector<double> by_coordinates(const HalfSpaces& p) {
  std::vector<double> x(p.d, 0.0), multiplier(p.n, 0.0);
  for (int round = 0; round < 200000; ++round) {
    double largest = 0.0;
    for (std::size_t i = 0; i < p.n; ++i) {
      double slack = p.offsets[i], norm = 0.0;
      for (std::size_t j = 0; j < p.d; ++j) {
        slack += p.normal(i)[j] * x[j];
        norm += p.normal(i)[j] * p.normal(i)[j];
      }
      const double change = std::max(-multiplier[i], -slack / norm);
      multiplier[i] += change;
      for (std::size_t j = 0; j < p.d; ++j) x[j] += change * p.normal(i)[j];
      largest = std::max(largest, std::abs(change) * std::sqrt(norm));
    }
    if (largest < 1e-13) break;
  }
  return x;
}

TEST(ShortestVector, AgreesWithDualCoordinateAscent) {
  ThreadPool pool(2);
  for (const auto& [n, d] : {std::pair<std::size_t, std::size_t>{3, 2}, {40, 5}, {300, 12}, {150, 30}}) {
    const HalfSpaces p = random_polyhedron(n, d, 3.0, n);
    const ShortestVector found = shortest_vector(p, pool);
    ASSERT_TRUE(found.feasible);
    EXPECT_LT(found.kkt_residual, 1e-10);
    const std::vector<double> expected = by_coordinates(p);
    for (std::size_t j = 0; j < d; ++j) EXPECT_NEAR(found.x[j], expected[j], 1e-6 * found.length());
  }
}

TEST(ShortestVector, OneHalfSpaceIsClosedForm) {
  ThreadPool pool(1);
  const HalfSpaces p{1, 3, {2.0, 0.0, 1.0}, {-10.0}};
  const ShortestVector found = shortest_vector(p, pool);
  EXPECT_NEAR(found.x[0], 4.0, 1e-12);
  EXPECT_NEAR(found.x[1], 0.0, 1e-12);
  EXPECT_NEAR(found.x[2], 2.0, 1e-12);
  EXPECT_EQ(found.n_active, 1u);
}

TEST(ShortestVector, SaysWhenThereIsNone) {
  ThreadPool pool(1);
  EXPECT_FALSE(shortest_vector({2, 2, {1.0, 1.0, -1.0, -1.0}, {-1.0, -1.0}}, pool).feasible);
  EXPECT_FALSE(shortest_vector({1, 2, {0.0, 0.0}, {-1.0}}, pool).feasible);
  // Three half-planes that meet pairwise but not together.
  EXPECT_FALSE(shortest_vector({3, 2, {1.0, 0.0, -1.0, 1.0, -1.0, -1.0}, {-1.0, 0.0, 0.0}}, pool).feasible);
}

TEST(ShortestVector, ZeroWhereEverythingHolds) {
  ThreadPool pool(1);
  const ShortestVector found = shortest_vector({2, 2, {1.0, 1.0, -1.0, -1.0}, {1.0, 1.0}}, pool);
  EXPECT_TRUE(found.feasible);
  EXPECT_EQ(found.length(), 0.0);
}

TEST(ShortestVector, DuplicatesAndDependentConstraintsDoNotStopIt) {
  ThreadPool pool(1);
  HalfSpaces p = random_polyhedron(60, 4, 3.0, 9);
  const ShortestVector once = shortest_vector(p, pool);
  for (std::size_t i = 0; i < 60; ++i) {  // every constraint again, half of them scaled
    for (std::size_t j = 0; j < 4; ++j) p.normals.push_back((i % 2 ? 3.0 : 1.0) * p.normals[i * 4 + j]);
    p.offsets.push_back((i % 2 ? 3.0 : 1.0) * p.offsets[i]);
  }
  p.n = 120;
  const ShortestVector twice = shortest_vector(p, pool);
  ASSERT_TRUE(twice.feasible);
  for (std::size_t j = 0; j < 4; ++j) EXPECT_NEAR(once.x[j], twice.x[j], 1e-9);
}

}  // namespace
}  // namespace deeptail
