#include <gtest/gtest.h>

#include <chrono>

#include "core/json.h"
#include "core/sha256.h"
#include "sizes.h"
#include "zoo.h"

namespace deeptail {
namespace {

Json good() {
  return parse_json(R"({"format": "deeptail-distribution-1", "name": "d", "d_vocab": 10,
    "tables": {"a": {"ids": [0], "probabilities": [1.0]}, "b": {"ids": [3, 1], "probabilities": [0.5, 0.5]}},
    "positions": ["a", "b", "b"]})",
                    "test");
}

std::string refusal(const Json& json) {
  try {
    parse_distribution(json_text(json), "d.json");
  } catch (const InputError& e) {
    return e.what();
  }
  return "";
}

// The refusal after one change; `pointer` names the place.
std::string after(const char* pointer, const Json& value) {
  Json json = good();
  json[Json::json_pointer(pointer)] = value;
  return refusal(json);
}

TEST(DistributionFile, Reads) {
  const std::string text = json_text(good());
  const Distribution dist = parse_distribution(text, "d.json");
  EXPECT_EQ(dist.name, "d");
  EXPECT_EQ(dist.length(), 3u);
  EXPECT_EQ(dist.d_vocab, 10u);
  EXPECT_EQ(dist.sha256, sha256_hex(text));
  EXPECT_EQ(dist.tokenizer_sha256, "");
  EXPECT_EQ(dist.table(2).ids(), (std::vector<TokenId>{1, 3}));
}

TEST(DistributionFile, RefusesTablesByPosition) {
  const std::string b = "d.json: table \"b\" (position 1 and 1 more): ";
  EXPECT_EQ(after("/tables/b/probabilities/0", -0.5), b + "token id 3 has probability -0.5: expected 0 to 1");
  EXPECT_EQ(after("/tables/b/probabilities/0", 0.6),
            b + "the probabilities sum to 1.1: expected 1 within 1e-06");
  EXPECT_EQ(after("/tables/b/probabilities/0", "x"),
            b + "key \"probabilities[0]\": expected a number, found \"x\"");
  EXPECT_EQ(after("/tables/b/probabilities", Json::array({1.0})), b + "2 ids but 1 probabilities");
  EXPECT_EQ(after("/tables/b/probabilities", 3), b + "key \"probabilities\": expected an array, found 3");
  EXPECT_EQ(after("/tables/b/ids", Json::array({3, 3})), b + "token id 3 occurs twice");
  EXPECT_EQ(after("/tables/b/ids/0", 10), b + "key \"ids[0]\": expected a token id from 0 to 9, found 10");
  EXPECT_EQ(after("/tables/b/ids/0", -1), b + "key \"ids[0]\": expected a token id from 0 to 9, found -1");
  EXPECT_EQ(after("/tables/b/ids/0", 1.5), b + "key \"ids[0]\": expected a token id from 0 to 9, found 1.5");
  EXPECT_EQ(after("/tables/b", Json::object()), b + "key \"ids\" is missing");
  EXPECT_EQ(after("/tables/b", 7), b + "expected an object, found 7");
  EXPECT_EQ(after("/tables/a", parse_json(R"({"ids": [], "probabilities": []})", "test")),
            "d.json: table \"a\" (position 0): the table is empty: expected at least one token");
}

TEST(DistributionFile, RefusesTheRest) {
  EXPECT_EQ(after("/positions/2", "c"), "d.json: position 2: there is no table named \"c\"");
  EXPECT_EQ(after("/positions/2", 1), "d.json: key \"positions[2]\": expected text, found 1");
  EXPECT_EQ(after("/positions", Json::array()),
            "d.json: key \"positions\": expected an array of 1 to 65536 table names");
  EXPECT_EQ(after("/format", "other"),
            "d.json: key \"format\": expected \"deeptail-distribution-1\", found \"other\"");
  EXPECT_EQ(after("/d_vocab", 0),
            "d.json: key \"d_vocab\": expected a whole number from 1 to 16777216, found 0");
  EXPECT_EQ(after("/tables", 1), "d.json: key \"tables\": expected an object, found 1");
  EXPECT_EQ(after("/tokenizer_sha256", "abc"),
            "d.json: key \"tokenizer_sha256\": expected 64 lower-case hex digits, found \"abc\"");
  EXPECT_EQ(after("/name", 5), "d.json: key \"name\": expected text, found 5");
  EXPECT_EQ(refusal(Json::array()), "d.json: expected an object, found []");
  for (const char* key : {"format", "name", "d_vocab", "tables", "positions"}) {
    Json json = good();
    json.erase(key);
    EXPECT_EQ(refusal(json), fmt::format("d.json: key \"{}\" is missing", key));
  }
}

TEST(DistributionFile, ManyTablesAtManyPositionsTakeLinearTime) {
  Json json = good();
  json["tables"] = Json::object();
  json["positions"] = Json::array();
  const std::size_t n = 30'000, length = 65'536;  // minutes, if every table were looked for at every position
  for (std::size_t i = 0; i < n; ++i)
    json["tables"]["t" + std::to_string(i)] = {{"ids", {0}}, {"probabilities", {1.0}}};
  for (std::size_t i = 0; i < length; ++i) json["positions"].push_back("t" + std::to_string(i % n));
  const std::string text = json_text(json);
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(parse_distribution(text, "d.json").length(), length);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(sized(5, 30)));
}

TEST(DistributionFile, InfinityIsRefused) {
  std::string text = json_text(good());
  text.replace(text.find("0.5"), 3, "1e999");
  EXPECT_THROW(parse_distribution(text, "d.json"), InputError);
}

TEST(DistributionFile, UnknownNameSaysWhereItLooked) {
  try {
    load_distribution("nonsense");
    FAIL();
  } catch (const InputError& e) {
    EXPECT_NE(std::string(e.what()).find("distribution nonsense: none of that name in"), std::string::npos);
  }
}

TEST(DistributionFile, TokensAsTextNeedATokenizer) {
  Json json = good();
  json["tables"]["b"].erase("ids");
  json["tables"]["b"]["tokens"] = {"a", "b"};
  EXPECT_EQ(
      refusal(json),
      "d.json: tokens as text need the key \"tokenizer\": the path of a tokenizer.json, relative to this "
      "file");
  json["tokenizer"] = "tokenizer.json";
  EXPECT_EQ(refusal(json), "d.json: key \"tokenizer\": only a file can name one");
  json["d_vocab"] = 4096;
  const std::string folder = DEEPTAIL_SOURCE "/models", text = json_text(json);
  const Distribution dist = parse_distribution(text, "d.json", folder);
  EXPECT_EQ(dist.table(1).ids(), (std::vector<TokenId>{65, 66}));
  EXPECT_EQ(dist.tokenizer_sha256, sha256_of_file(folder + "/tokenizer.json"));
  EXPECT_EQ(dist.sha256, sha256_hex(text + dist.tokenizer_sha256));
  json["tokenizer_sha256"] = std::string(64, '0');
  EXPECT_THROW(parse_distribution(json_text(json), "d.json", folder), InputError);
  json.erase("tokenizer_sha256");
  json["d_vocab"] = 66;  // "b" is 66
  EXPECT_THROW(parse_distribution(json_text(json), "d.json", folder), InputError);
  json["tables"]["b"]["ids"] = {1, 2};
  EXPECT_NE(refusal(json).find("expected \"ids\" or \"tokens\", found both"), std::string::npos);
}

}  // namespace
}  // namespace deeptail
