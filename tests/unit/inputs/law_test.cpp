// Laws make inputs from numbers: tables to the bit as ever, and a law with unequal lengths beside them.
#include <gtest/gtest.h>

#include "deeptail/law.h"
#include "law_checks.h"
#include "unit/chain_law.h"
#include "zoo.h"

namespace deeptail {
namespace {

TEST(Law, TablesMakeTheSamplesOfTheirDistribution) {
  for (const char* name : {"english", "caps", "icl"}) {  // even and odd lengths
    const auto law = load_law(fmt::format("{}/distributions/{}.json", DEEPTAIL_SOURCE, name));
    const Distribution dist = zoo(name);
    ASSERT_NE(law->tables(), nullptr);
    EXPECT_EQ(law->facts().name, dist.name);
    EXPECT_EQ(law->facts().sha256, dist.sha256);
    EXPECT_EQ(law->facts().tokenizer_sha256, dist.tokenizer_sha256);
    EXPECT_EQ(law->facts().n_parts, dist.length());
    EXPECT_EQ(law->facts().max_length, dist.length());
    EXPECT_EQ(law->free_parts(), free_positions(dist));
    for (const std::size_t threads : {1, 2, 7}) {
      ThreadPool pool(threads);
      std::vector<TokenId> expected(700 * dist.length());
      sample_range(dist, 9, 1000, pool, expected);
      const Inputs found = sample_inputs(*law, 9, 1000, 700, pool);
      EXPECT_EQ(found.tokens, expected);
      EXPECT_EQ(found.lengths, std::vector<std::uint32_t>(700, static_cast<std::uint32_t>(dist.length())));
    }
  }
}

TEST(Law, InputsBeginWithTheConstantPrefix) {
  ThreadPool pool(2);
  const auto law = parse_law(
      R"({"format":"deeptail-distribution-1","name":"d","d_vocab":9,"positions":["a","b","a","t","a","t"],
          "tables":{"a":{"ids":[4],"probabilities":[1]},"b":{"ids":[7],"probabilities":[1]},
                    "t":{"ids":[1,2],"probabilities":[0.5,0.5]}}})",
      "law.json");
  EXPECT_EQ(constant_prefix(*law, pool), (std::vector<TokenId>{4, 7, 4}));
  const ChainLaw chain(8, 6);
  EXPECT_EQ(constant_prefix_length(chain), 0u);
  for (const char* name : {"english", "caps", "hex"}) {
    const auto zoo_law = load_law(fmt::format("{}/distributions/{}.json", DEEPTAIL_SOURCE, name));
    const std::vector<TokenId> prefix = constant_prefix(*zoo_law, pool);
    EXPECT_EQ(prefix.size(), zoo_law->first_position(zoo_law->free_parts().front())) << name;
    const Inputs some = sample_inputs(*zoo_law, 1, 0, 50, pool);
    for (std::size_t i = 0; i < 50; ++i)
      EXPECT_TRUE(std::equal(prefix.begin(), prefix.end(), some.sequence(i).begin())) << name;
  }
}

TEST(Law, AFormatThatNobodyReadsIsNamed) {
  const auto message = [](const char* text) {
    try {
      parse_law(text, "law.json");
    } catch (const InputError& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  EXPECT_EQ(message(R"({"format": "deeptail-law-9"})"),
            "law.json: key \"format\": expected \"deeptail-distribution-1\" or \"deeptail-law-1\", found "
            "\"deeptail-law-9\"");
  EXPECT_EQ(message(R"({"name": "x"})"), "law.json: key \"format\" is missing");
  EXPECT_EQ(message("[]"), "law.json: expected an object, found []");
}

// Redrawing a part leaves the tokens before its first position alone, and the frequencies of lengths are
// those of the chain.
TEST(Law, AChainHasInputsOfUnequalLengths) {
  const ChainLaw law(8, 6);
  ThreadPool pool(2);
  const std::size_t n = 20000, n_parts = law.facts().n_parts;
  std::vector<std::uint64_t> parts(n * n_parts);
  sample_parts(law, 3, 0, pool, parts);
  Inputs before, after;
  law.make(parts, before, pool);
  double shortest = 0.0;
  for (std::size_t i = 0; i < n; ++i) {
    EXPECT_EQ(before.sequence(i).back(), ChainLaw::kEnd);
    shortest += before.lengths[i] == 2;
    parts[i * n_parts + i % n_parts] ^= ~std::uint64_t{0};
  }
  EXPECT_NEAR(shortest / static_cast<double>(n), ChainLaw::kStop,
              4 * std::sqrt(0.15 * 0.85 / static_cast<double>(n)));  // false alarm 6e-5
  law.make(parts, after, pool);
  for (std::size_t i = 0; i < n; ++i) {
    const std::size_t kept = law.first_position(i % n_parts);
    EXPECT_TRUE(std::equal(before.row(i).begin(), before.row(i).begin() + static_cast<std::ptrdiff_t>(kept),
                           after.row(i).begin()));
  }
}

TEST(Law, RedrawsAsItMakes) {
  expect_redraws_as_made(TokenTables(zoo("english")));
  expect_redraws_as_made(ChainLaw(8, 6));
  expect_a_law(TokenTables(zoo("caps")));
  expect_a_law(ChainLaw(8, 6));
}

TEST(Law, WhatAModelCannotReadIsRefused) {
  ModelConfig config;
  config.model_name = "small";
  config.n_ctx = 8;
  config.d_vocab = 6;
  check_fits(ChainLaw(8, 6), config, "");
  EXPECT_THROW(check_fits(ChainLaw(9, 6), config, ""), InputError);
  EXPECT_THROW(check_fits(ChainLaw(8, 7), config, ""), InputError);
  EXPECT_THROW(check_fits(TokenTables(zoo("hex")), config, ""), InputError);
}

}  // namespace
}  // namespace deeptail
