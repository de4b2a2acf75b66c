#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "core/json.h"
#include "zoo.h"

namespace deeptail {
namespace {

constexpr std::uint64_t kLast = ~std::uint64_t{0};

// Units of 2^-64 that draw() gives each token; 2^64 itself reads as 0.
std::vector<std::uint64_t> units_of(const TokenTable& table) {
  std::vector<std::uint64_t> units;
  for (std::size_t i = 0; i < table.size(); ++i)
    units.push_back(table.last_unit(i) + 1 - (i == 0 ? 0 : table.last_unit(i - 1) + 1));
  return units;
}

TEST(TokenTable, SortsAndCoversEverything) {
  const TokenTable table("t", {7, 3}, {0.25, 0.75}, "t");
  EXPECT_EQ(table.ids(), (std::vector<TokenId>{3, 7}));
  EXPECT_EQ(units_of(table), (std::vector<std::uint64_t>{3ull << 62, 1ull << 62}));
  EXPECT_EQ(table.draw(0), 3);
  EXPECT_EQ(table.draw((3ull << 62) - 1), 3);
  EXPECT_EQ(table.draw(3ull << 62), 7);
  EXPECT_EQ(table.draw(kLast), 7);
  EXPECT_EQ(table.probability(0), 0.75);
  EXPECT_EQ(table.log_probability(7), std::log(0.25));
  EXPECT_EQ(table.log_probability(4), -INFINITY);
  EXPECT_NEAR(table.entropy(), 0.75 * std::log(4.0 / 3.0) + 0.25 * std::log(4.0), 1e-15);
}

TEST(TokenTable, OneTokenIsConstant) {
  const TokenTable table("t", {5}, {1.0}, "t");
  EXPECT_EQ(table.last_unit(0), kLast);
  EXPECT_EQ(table.draw(0), 5);
  EXPECT_EQ(table.draw(kLast), 5);
  EXPECT_EQ(table.probability(0), 1.0);
  EXPECT_EQ(table.entropy(), 0.0);
  EXPECT_FALSE(std::signbit(table.entropy()));
}

// 1/3 is a whole number of 2^-54 units in floating point; the missing 2^64 - 3 * fl(2^64 / 3) is shared out.
TEST(TokenTable, LargestRemainders) {
  const TokenTable thirds("t", {1, 2, 3}, {1.0 / 3, 1.0 / 3, 1.0 / 3}, "t");
  const auto units = units_of(thirds);
  const std::uint64_t floor = kLast / 3;  // 2^64 = 3 * floor + 1
  EXPECT_EQ(units, (std::vector<std::uint64_t>{floor + 1, floor, floor}));
}

TEST(TokenTable, SmallErrorsOfTheSumAreShared) {
  for (const double error : {-9e-7, 9e-7}) {
    const TokenTable table("t", {1, 2}, {0.25 * (1 + error), 0.75 * (1 + error)}, "t");
    EXPECT_NEAR(table.probability(0), 0.25, 1e-16);
    EXPECT_EQ(table.last_unit(1), kLast);
  }
  EXPECT_THROW(TokenTable("t", {1, 2}, {0.25, 0.7500011}, "t"), InputError);
  EXPECT_THROW(TokenTable("t", {1, 2}, {0.25, 0.7499989}, "t"), InputError);
}

TEST(TokenTable, SmallestProbabilities) {
  const TokenTable table("t", {1, 2}, {std::ldexp(1.0, -64), 1.0}, "t");
  EXPECT_EQ(table.draw(0), 1);
  EXPECT_EQ(table.draw(1), 2);
  EXPECT_THROW(TokenTable("t", {1, 2}, {1e-25, 1.0}, "t"), InputError);
  EXPECT_THROW(TokenTable("t", {1, 2}, {0.0, 1.0}, "t"), InputError);
}

// draw() against the definition, at and around every boundary, for a table with very uneven probabilities.
TEST(TokenTable, GuideNeverSkips) {
  std::vector<TokenId> ids;
  std::vector<double> probabilities;
  for (int i = 0; i < 62; ++i)
    ids.push_back(i), probabilities.push_back(std::ldexp(1.0, -(i < 61 ? i + 1 : 61)));
  const TokenTable table("t", ids, probabilities, "t");
  for (std::size_t i = 0; i < table.size(); ++i) {
    EXPECT_EQ(table.draw(table.last_unit(i)), table.ids()[i]);
    if (i + 1 == table.size()) break;
    EXPECT_EQ(table.draw(table.last_unit(i) + 1), table.ids()[i + 1]);
  }
}

TEST(TokenTable, ShippedProbabilitiesAreReproducedExactly) {
  for (const char* name : kZoo) {
    const Distribution dist = zoo(name);
    const InputFile file(fmt::format("{}/distributions/{}.json", DEEPTAIL_SOURCE, name));
    const Json json = parse_json(file.text(), file.path());
    for (const TokenTable& table : dist.tables) {
      const auto written = json.at("tables").at(table.name()).at("probabilities").get<std::vector<double>>();
      const auto units = units_of(table);
      for (std::size_t i = 0; i < table.size(); ++i) {
        EXPECT_EQ(table.probability(i), written[i]) << name << " " << table.name();
        EXPECT_EQ(units[i] % (1ull << 32), 0u);  // multiples of 2^-32
      }
    }
  }
}

}  // namespace
}  // namespace deeptail
