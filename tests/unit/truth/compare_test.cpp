#include <gtest/gtest.h>

#include <chrono>
#include <cmath>

#include "deeptail/truth.h"
#include "sizes.h"

namespace deeptail {
namespace {

Truth counts_of(std::uint64_t seed, std::map<TokenId, std::uint64_t> counts) {
  std::uint64_t samples = 0;
  for (const auto& [token, count] : counts) samples += count;
  return {.model = "m", .dist = "d", .ranges = {{"x", seed, 0, samples}}, .counts = std::move(counts)};
}

// Two cells: chi-square with one degree of freedom is the square of the difference in standard deviations.
TEST(CompareTruth, TwoTokensByHand) {
  const TruthComparison c =
      compare_truth(counts_of(1, {{1, 400}, {2, 600}}), counts_of(2, {{1, 900}, {2, 1100}}));
  const double pooled = 1300.0 / 3000.0;
  const double z = std::abs(0.4 - 0.45) / std::sqrt(pooled * (1 - pooled) * (1 / 1000.0 + 1 / 2000.0));
  EXPECT_EQ(c.n_tokens, 2u);
  EXPECT_NEAR(c.max_z, z, 1e-12);
  EXPECT_EQ(c.degrees, 1u);
  EXPECT_NEAR(c.chi_square, z * z, 1e-9);
  EXPECT_NEAR(c.p_value, std::erfc(z / std::sqrt(2.0)), 1e-12);
}

TEST(CompareTruth, RareTokensAreTakenTogether) {
  const TruthComparison c = compare_truth(counts_of(1, {{1, 9900}, {2, 60}, {3, 40}}),
                                          counts_of(2, {{1, 9900}, {2, 60}, {4, 30}, {5, 10}}));
  EXPECT_EQ(c.n_tokens, 2u);
  EXPECT_EQ(c.degrees, 2u);  // 1, 2, and the rest
  EXPECT_EQ(c.chi_square, 0.0);
  EXPECT_EQ(c.p_value, 1.0);
  EXPECT_EQ(c.unseen, (std::vector<TokenId>{4, 5}));
}

// A part of the same inputs is compared with the rest of them.
TEST(CompareTruth, PartOfTheOther) {
  const Truth part = counts_of(1, {{1, 400}, {2, 600}}), all = counts_of(1, {{1, 1300}, {2, 1700}});
  const TruthComparison c = compare_truth(part, all);
  EXPECT_EQ(c.chi_square, compare_truth(part, counts_of(2, {{1, 900}, {2, 1100}})).chi_square);
  EXPECT_THROW(compare_truth(all, part), InputError);
}

// Every other input of b, each a range of its own: quadratic time would be minutes.
TEST(CompareTruth, ManyRanges) {
  constexpr std::uint64_t kRanges = sized(100000, 5000);
  Truth a = counts_of(1, {{1, kRanges}}), b = counts_of(1, {{1, 2 * kRanges}});
  a.ranges.clear();
  for (std::uint64_t i = 0; i < kRanges; ++i) a.ranges.push_back({"x", 1, 2 * i, 1});
  const auto start = std::chrono::steady_clock::now();
  const TruthComparison c = compare_truth(a, b);
  EXPECT_LT(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(), 20.0);
  EXPECT_EQ(c.n_tokens, 1u);
  EXPECT_EQ(c.max_z, 0.0);
  a.ranges.back().count = 3;  // beyond the end of b
  EXPECT_THROW(compare_truth(a, b), InputError);
}

TEST(CompareTruth, PartsOfSeveralRanges) {
  Truth a = counts_of(1, {{1, 30}, {2, 70}}), b = counts_of(1, {{1, 300}, {2, 700}});
  a.ranges = {{"x", 1, 50, 20}, {"x", 1, 70, 30}, {"x", 2, 0, 50}};
  b.ranges = {{"x", 1, 40, 400}, {"x", 2, 0, 50}, {"x", 3, 0, 550}};
  const TruthComparison c = compare_truth(a, b, 1.0);
  EXPECT_EQ(c.n_tokens, 2u);
  EXPECT_NEAR(c.chi_square, 0.0, 1e-9);
  b.ranges[1].count = 40;  // no longer holds all of it
  b.ranges[2].count = 560;
  EXPECT_THROW(compare_truth(a, b), InputError);
}

TEST(CompareTruth, RefusesSharedInputsAndOtherSubjects) {
  const Truth a = counts_of(1, {{1, 100}});
  EXPECT_THROW(compare_truth(a, a), InputError);
  Truth other = counts_of(2, {{1, 100}});
  other.dist = "e";
  EXPECT_THROW(compare_truth(a, other), InputError);
}

}  // namespace
}  // namespace deeptail
