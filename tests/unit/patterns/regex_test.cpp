// What regular expressions mean, and the sentences for what they cannot.
#include <gtest/gtest.h>

#include <chrono>

#include "deeptail/patterns.h"

namespace deeptail {
namespace {

std::string message(std::string_view regex) {
  try {
    matches(regex, "pattern");
  } catch (const InputError& e) {
    return e.what();
  }
  return "";
}

TEST(Patterns, WordsAndEnds) {
  const ByteDfa word = matches("\\bbomb\\b", "test");
  EXPECT_TRUE(word.accepts("a bomb."));
  EXPECT_TRUE(word.accepts("bomb"));
  EXPECT_FALSE(word.accepts("bombs"));
  EXPECT_FALSE(word.accepts("abomb"));
  const ByteDfa end = matches("yes\\.?$", "test");
  EXPECT_TRUE(end.accepts("oh yes."));
  EXPECT_FALSE(end.accepts("yes. no"));
  EXPECT_FALSE(end.accepts("yes\n"));  // the very end, without PCRE2's grace for a last newline
  EXPECT_TRUE(matches("(?i)sure, here", "test").accepts("SURE, here it is"));
  EXPECT_TRUE(matches("^[^x]*$", "test").accepts("abc"));
  EXPECT_FALSE(matches("^[^x]*$", "test").accepts("abxc"));
}

TEST(Patterns, NoEdgeIsNoPlaceInsideACharacter) {
  const ByteDfa none = matches("\\B", "test");
  for (const char* text : {"a", "a\u00e9a", "b\U0001F600a", "a\u4e16_"})
    EXPECT_FALSE(none.accepts(text)) << text;
  for (const char* text : {"ab", "\u00e9\u00e9", "\U0001F600", "a \u4e16b", "."})
    EXPECT_TRUE(none.accepts(text)) << text;
}

TEST(Patterns, WhatIsCertainIsAccepted) {
  for (const char* regex : {"", "a*", "$", "x|^"}) {
    const ByteDfa dfa = matches(regex, "test");
    EXPECT_EQ(dfa.size(), 1u) << regex;
    EXPECT_TRUE(dfa.accepting[dfa.start]) << regex;
  }
  const ByteDfa never = matches("a^", "test");
  EXPECT_EQ(never.size(), 1u);
  EXPECT_FALSE(never.accepts("a"));
}

TEST(Patterns, AStringIsTheSameEitherWay) {
  const ByteDfa a = matches("wizard", "test"), b = contains("wizard");
  EXPECT_EQ(a.size(), b.size());
  const auto found = find_match(matches("wi[zs]+ard", "test"), "the wisard, a wizzzard");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->begin, 4u);
  EXPECT_EQ(found->end, 10u);
}

TEST(Patterns, WhatIsNotUnderstoodIsNamed) {
  EXPECT_EQ(message("(a)\\1"),
            "pattern: the regular expression \"(a)\\1\", at byte 4: references to groups are not supported");
  const std::pair<const char*, const char*> rows[] = {{"(?=a)", "looking ahead or behind"},
                                                      {"(?<!a)b", "looking ahead or behind"},
                                                      {"(?>a)", "atomic"},
                                                      {"a++", "give nothing back"},
                                                      {"a**", "a repetition is repeated"},
                                                      {"*a", "nothing to repeat"},
                                                      {"(a", "expected )"},
                                                      {"a)", "closes no group"},
                                                      {"[a", "expected ]"},
                                                      {"[b-a]", "a range"},
                                                      {"[[:alpha:]]", "[:alpha:]"},
                                                      {"\\p{L}", "\\p"},
                                                      {"a\\", "backslash at the end"},
                                                      {"a{5,2}", "ascend"},
                                                      {"a{1001}", "at most 1000"},
                                                      {"(?x)a", "i and s"},
                                                      {"(?#c)", "comments"},
                                                      {"\\xg", "\\xHH"},
                                                      {"\\x{D800}", "\\xHH"},
                                                      {"\xFF", "not valid UTF-8"},
                                                      {"(*FAIL)", "verbs"},
                                                      {"(?P<1>a)", "name of a group"}};
  for (const auto& [regex, part] : rows)
    EXPECT_NE(message(regex).find(part), std::string::npos) << message(regex);
}

// Whatever grows too large is refused, soon.
TEST(Patterns, WhatBlowsUpIsRefused) {
  const auto began = std::chrono::steady_clock::now();
  std::string nested(3000, '(');
  for (const std::string& regex :
       {std::string("(a|b)*a(a|b){30}"), std::string("((a{1000}){1000}){1000}"),
        std::string("(((()){1000}){1000}){1000}"), std::string("(.{0,500}x){50}"), nested,
        std::string("[a-z]{900}[^a]{900}.{900}"), std::string(10'001, 'a')})
    EXPECT_NE(message(regex), "") << regex.substr(0, 40);
  for (const char* regex : {"(a*)*b", "((a|a)*)*b", "(x+x+)+y", "a{0,900}b"}) EXPECT_EQ(message(regex), "");
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(60));
}

}  // namespace
}  // namespace deeptail
