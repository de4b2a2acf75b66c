// Distributions made for a tokenizer, compared with the files that ship, which a Python program made first.
#include <gtest/gtest.h>

#include <numeric>

#include "deeptail/build_distribution.h"
#include "inputs/builders/frozen_tables.h"
#include "inputs/builders/letters.h"
#include "zoo.h"

namespace deeptail {
namespace {

const std::string kRoot = std::string(DEEPTAIL_TEST_DATA) + "/../..";

struct BuilderZoo {
  std::string path = kRoot + "/models/tokenizer.json";
  NamedTokenizer tokenizer = load_tokenizer(path);
  BuilderVocabulary vocabulary{tokenizer, 0};
  TokenCounts counts =
      parse_token_counts(InputFile(kRoot + "/training/token_counts.json").text(), "token_counts.json");
};
const BuilderZoo& builder_zoo() {
  static const BuilderZoo made;
  return made;
}

TEST(Builders, TheEightAreTheFilesThatShipToTheByte) {
  for (const std::string& name : built_distributions())
    EXPECT_EQ(build_distribution(name, builder_zoo().vocabulary, builder_zoo().counts),
              InputFile(kRoot + "/distributions/" + name + ".json").text())
        << name;
}

TEST(Builders, QuantisedWeightsSumToTheWhole) {
  const std::vector<std::vector<double>> tables = {
      {1.0}, {1.0, 1.0, 1.0}, {1e12, 1.0, 1.0}, {0.1, 0.2, 0.3, 0.4}, {1e-30, 1e-30, 1.0}};
  for (const auto& table : tables) {
    const auto weights = quantise(table);
    EXPECT_EQ(std::accumulate(weights.begin(), weights.end(), std::uint64_t{0}), std::uint64_t{1} << 32);
    for (const std::uint64_t w : weights) EXPECT_GE(w, 1u);
  }
}

TEST(Builders, Letters) {
  EXPECT_TRUE(is_camel("Camel"));
  EXPECT_FALSE(is_camel("CAmel"));
  EXPECT_FALSE(is_camel("C"));
  EXPECT_TRUE(is_spaced_word(" word"));
  EXPECT_FALSE(is_spaced_word(" "));
  EXPECT_TRUE(is_shouted(" I"));
  EXPECT_FALSE(is_shouted("I"));
  EXPECT_FALSE(is_shouted("  "));
  EXPECT_TRUE(is_alphabetic(" año"));
  EXPECT_FALSE(is_alphabetic(" "));
  EXPECT_FALSE(is_alphabetic("a1"));
}

// Pieces are cut where that changes no token: the same counts as of the whole.
TEST(Builders, CountsDoNotDependOnWhereTheTextIsCut) {
  std::string text;
  for (int i = 0; text.size() < 600000; ++i)
    text += i % 7 == 0   ? "\n\n    def f(x):\n"
            : i % 3 == 0 ? "a line, and \n  another\n"
                         : "The end\nof it 1234.\n";
  const Tokenizer& tokenizer = builder_zoo().tokenizer.tokenizer;
  std::vector<std::uint64_t> whole(builder_zoo().vocabulary.d_vocab, 0);
  for (const TokenId id : tokenizer.encode(text)) ++whole[static_cast<std::size_t>(id)];
  for (const std::size_t threads : {1, 3}) {
    ThreadPool pool(threads);
    EXPECT_EQ(count_tokens(tokenizer, builder_zoo().vocabulary.d_vocab, text, pool), whole) << threads;
  }
}

TEST(Builders, FromText) {
  std::vector<std::uint64_t> counts(builder_zoo().vocabulary.d_vocab, 0);
  counts[70] = 3;
  counts[65] = 1;
  counts[0] = 9;  // BOS: what begins an input is none of its text
  const Distribution dist = parse_distribution(
      distribution_from_counts(builder_zoo().vocabulary, counts,
                               {.name = "mine", .description = "d", .length = 4, .top = 0}),
      "mine");
  EXPECT_EQ(dist.length(), 5u);
  EXPECT_EQ(dist.table(0).ids(), std::vector<TokenId>{0});
  EXPECT_EQ(dist.table(4).ids(), (std::vector<TokenId>{65, 70}));
  EXPECT_DOUBLE_EQ(dist.table(4).probability(1), 0.75);
  const Distribution top =
      parse_distribution(distribution_from_counts(builder_zoo().vocabulary, counts,
                                                  {.name = "top", .description = "", .length = 1, .top = 1}),
                         "top");
  EXPECT_EQ(top.table(1).ids(), std::vector<TokenId>{70});
}

TEST(Builders, RefusesInASentence) {
  const auto refusal = [](const auto& make) -> std::string {
    try {
      make();
    } catch (const InputError& e) {
      return e.what();
    }
    return "";
  };
  TokenCounts other = builder_zoo().counts;
  other.tokenizer_sha256 = std::string(64, '0');
  EXPECT_NE(refusal([&] { build_distribution("camel", builder_zoo().vocabulary, other); }).find("another tokenizer"),
            std::string::npos);
  TokenCounts some = builder_zoo().counts;
  some.corpora.erase("spanish");
  EXPECT_NE(refusal([&] { build_distribution("icl", builder_zoo().vocabulary, some); }).find("spanish"),
            std::string::npos);
  EXPECT_NE(refusal([&] { build_distribution("hexx", builder_zoo().vocabulary, some); }).find("hexx"),
            std::string::npos);
  EXPECT_NE(refusal([&] { parse_token_counts(R"({"tokenizer_sha256": "x", "counts": {}})", "c.json"); }), "");
  EXPECT_NE(refusal([&] {
              parse_token_counts(
                  R"({"tokenizer_sha256": ")" + std::string(64, 'a') + R"(", "counts": {"code": [-1]}})",
                  "c.json");
            }),
            "");
}

}  // namespace
}  // namespace deeptail
