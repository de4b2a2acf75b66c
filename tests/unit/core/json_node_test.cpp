#include "core/json_node.h"

#include <gtest/gtest.h>

#include <functional>

namespace deeptail {
namespace {

class JsonNodeTest : public ::testing::Test {
 protected:
  const Json document_ = parse_json(
      R"({"name": "x", "n": 7, "ids": [1, 4294967297], "rows": [{"p": 0.5}], "none": null, "deep": {"p": 1}})",
      "test");
  const JsonNode root_{document_, "f.json"};

  static std::string message_of(const std::function<void()>& read) {
    try {
      read();
    } catch (const InputError& e) {
      return e.what();
    }
    return "";
  }
};

TEST_F(JsonNodeTest, ReadsWhatIsThere) {
  EXPECT_EQ(root_.at("name").text(), "x");
  EXPECT_EQ(root_.at("n").count(0, 7), 7u);
  EXPECT_EQ(root_.at("rows").element(0).at("p").number(), 0.5);
  EXPECT_EQ(root_.at("deep").at("p").where(), "f.json: key \"deep.p\"");
  EXPECT_FALSE(root_.has("none"));
  EXPECT_FALSE(root_.has("nothing"));
  EXPECT_TRUE(root_.has("n"));
}

TEST_F(JsonNodeTest, EveryMistakeHasItsSentence) {
  EXPECT_EQ(message_of([&] { root_.at("x"); }), "f.json: key \"x\" is missing");
  EXPECT_EQ(message_of([&] { root_.at("rows").element(0).at("q"); }), "f.json: key \"rows[0].q\" is missing");
  EXPECT_EQ(message_of([&] { root_.at("n").at("x"); }), "f.json: key \"n\": expected an object, found 7");
  EXPECT_EQ(message_of([&] { root_.at("n").text(); }), "f.json: key \"n\": expected text, found 7");
  EXPECT_EQ(message_of([&] { root_.at("n").boolean(); }),
            "f.json: key \"n\": expected true or false, found 7");
  EXPECT_EQ(message_of([&] { root_.at("n").count(0, 6); }),
            "f.json: key \"n\": expected a whole number from 0 to 6, found 7");
  EXPECT_EQ(message_of([&] { root_.at("name").number(); }),
            "f.json: key \"name\": expected a number, found \"x\"");
  EXPECT_EQ(message_of([&] { root_.at("name").sha256(); }),
            "f.json: key \"name\": expected 64 lower-case hex digits, found \"x\"");
  EXPECT_EQ(message_of([&] { root_.at("n").array_size(); }), "f.json: key \"n\": expected an array, found 7");
  EXPECT_EQ(message_of([&] { root_.at("ids").token_ids(10); }),  // and not 1, which it is modulo 2^32
            "f.json: key \"ids[1]\": expected a token id from 0 to 9, found 4294967297");
  EXPECT_EQ(message_of([&] { root_.at("rows").numbers(); }),
            "f.json: key \"rows[0]\": expected a number, found {\"p\":0.5}");
}

}  // namespace
}  // namespace deeptail
