#include "core/json.h"

#include <gtest/gtest.h>

#include "deeptail/core.h"

namespace deeptail {
namespace {

std::string message_of(std::string_view text) {
  try {
    parse_json(text, "file.json");
  } catch (const InputError& e) {
    return e.what();
  }
  return "";
}

TEST(Json, NamesFileAndOffset) {
  EXPECT_EQ(parse_json("{\"a\": 1}", "file.json").at("a"), 1);
  EXPECT_EQ(message_of("{\"a\": }"), "file.json: not valid JSON at byte 7 of 7");
  EXPECT_EQ(message_of(""), "file.json: not valid JSON at byte 1 of 0");
}

TEST(Json, RefusesKeysThatOccurTwice) {
  EXPECT_EQ(message_of(R"({"a": {"b": 1, "c": 2, "b": 1}})"),
            "file.json: key \"b\" occurs twice in one object: expected it once");
  EXPECT_EQ(message_of(R"({"a": 1, "\u0061": 2})"),
            "file.json: key \"a\" occurs twice in one object: expected it once");
  EXPECT_EQ(message_of(R"([{"a": 1}, {"a": {"a": 2}}])"), "");
}

TEST(Json, RefusesDeepNesting) {
  const std::string deep = std::string(100000, '[');
  EXPECT_EQ(message_of(deep), "file.json: JSON nested deeper than 64 levels");
}

TEST(Json, NumbersOutOfRange) {
  EXPECT_EQ(message_of("[1e999]"), "file.json: number out of range near byte 6 of 7");
}

TEST(Json, ManyObjectsTakeLinearTime) {
  std::string text = "[{}";
  for (int i = 0; i < 300000; ++i) text += ",{}";
  EXPECT_EQ(parse_json(text + "]", "file.json").size(), 300001u);  // minutes, if it were quadratic
}

TEST(Json, PrintableEscapesAndShortens) {
  EXPECT_EQ(printable("a\nb\xff"), "a\\x0ab\\xff");
  EXPECT_EQ(printable("abcdef", 3), "abc...");
}

}  // namespace
}  // namespace deeptail
