#include "text/regex.h"

#include <gtest/gtest.h>

#include <chrono>

#include "deeptail/core.h"
#include "text/regex_syntax.h"

namespace deeptail {
namespace {

std::vector<std::string> all_matches(const Regex& regex, std::string_view text) {
  MatchClock clock;
  clock.add_text(text.size());
  Matcher matcher(regex, clock);
  matcher.start(text);
  std::vector<std::string> found;
  while (const auto span = matcher.next())
    found.emplace_back(text.substr(span->begin, span->end - span->begin));
  return found;
}

std::vector<std::string> all_matches(std::string_view pattern, std::string_view text) {
  return all_matches(Regex::from_pattern(pattern, "test"), text);
}

using Found = std::vector<std::string>;

TEST(Regex, MeansWhatItMeansToOniguruma) {
  EXPECT_EQ(all_matches(R"(\s)", " a\u0085\u00a0\u180e\u3000"), (Found{" ", "\u0085", "\u00a0", "\u3000"}));
  EXPECT_EQ(all_matches(R"(\w+)", "ab_1 e\u0301\u203f-\u24b6"), (Found{"ab_1", "e\u0301\u203f", "\u24b6"}));
  EXPECT_EQ(all_matches(R"([\w-]+)", "a-b c"), (Found{"a-b", "c"}));
  EXPECT_EQ(all_matches(R"(\W)", "a.b"), (Found{"."}));
  EXPECT_EQ(all_matches(R"(\d)", "1\u0663\u00b2"), (Found{"1", "\u0663"}));
  EXPECT_EQ(all_matches(R"(\bc\w*)", "cat bcc c"), (Found{"cat", "c"}));
  EXPECT_EQ(all_matches(R"(\Bc)", "cat bcc"), (Found{"c", "c"}));
  EXPECT_EQ(all_matches(R"(^.)", "ab\ncd\n"), (Found{"a", "c"}));  // every line
  EXPECT_EQ(all_matches(R"(.$)", "ab\ncd"), (Found{"b", "d"}));
  EXPECT_EQ(all_matches(R"(.+)", "a\rb\nc"), (Found{"a\rb", "c"}));  // only \n ends a line
  EXPECT_EQ(all_matches(R"(\v)", "\n\v"), (Found{"\v"}));
  EXPECT_EQ(all_matches(R"(\x41\x{e9}\u00e9)", "A\u00e9\u00e9"), (Found{"A\u00e9\u00e9"}));
  EXPECT_EQ(all_matches(R"((?i:'s))", "'S'\u017f"), (Found{"'S", "'\u017f"}));
  EXPECT_EQ(all_matches(R"(\p{Han}+|\p{^L}|\P{L})", "a\u4e00\u30fc1"),
            (Found{"\u4e00", "1"}));  // scripts, not extensions
  EXPECT_EQ(all_matches(R"((a)(b))", "ab"), (Found{"ab"}));
  EXPECT_EQ(all_matches("a++b|a*", "aabc"), (Found{"aab", ""}));  // no empty match right after another
}

TEST(Regex, FindsMatchesFarApart) {
  const std::string gap(1000, '.');
  EXPECT_EQ(all_matches("\u00e9", gap + "\u00e9" + gap + "\u00e9"), (Found{"\u00e9", "\u00e9"}));
  std::string accents;
  for (int i = 0; i < 300; ++i) accents += "\u00e9";
  EXPECT_EQ(all_matches("x", accents + "x" + accents), (Found{"x"}));
}

TEST(Regex, RefusesWhatPcre2ReadsDifferently) {
  const std::pair<const char*, const char*> cases[] = {
      {"[a[b]]", "a set inside a set"},
      {"[[:alpha:]]", "a set inside a set"},
      {"[a&&b]", "intersection"},
      {"[]a]", "an empty set"},
      {"[abc", "closing ]"},
      {"a{,3}", "does not begin {n}"},
      {"a{2}?", "after {n}"},
      {"a{2,3}+", "after an interval"},
      {"a{3,2}", "n > m"},
      {"a{999999}", "does not begin {n}"},
      {"(?m)a", "this kind of group"},
      {"(?<name>a)", "this kind of group"},
      {"(?R)", "this kind of group"},
      {"(*FAIL)", "the construct (*"},
      {R"((a)\1)", R"(\1)"},
      {R"(\h)", R"(\h)"},
      {R"(\K)", R"(\K)"},
      {R"([\W])", R"(\W inside a set)"},
      {R"(\xe9)", R"(\x80 or higher)"},
      {R"(\u12)", "a short"},
      {R"(\pL)", "without {name}"},
      {R"(\p{L&})", "property name"},
      {"a\\", "at the end"},
      {"(a", "cannot be compiled"},
      {R"(\p{Klingon})", "cannot be compiled"},
      {"*", "cannot be compiled"},
  };
  for (const auto& [pattern, fragment] : cases) {
    try {
      Regex::from_pattern(pattern, "file.json: pre_tokenizer.pattern.Regex");
      ADD_FAILURE() << pattern;
    } catch (const InputError& e) {
      EXPECT_NE(std::string(e.what()).find(fragment), std::string::npos) << e.what();
      EXPECT_TRUE(std::string(e.what()).starts_with("file.json: pre_tokenizer.pattern.Regex: ")) << e.what();
    }
  }
}

TEST(Regex, PathologicalPatternsEndWithASentence) {
  const std::pair<const char*, std::string> cases[] = {
      {"(?:a+)+[bc]", std::string(5'000, 'a')},    // exponential from each start
      {"a*a*a*a*[bc]", std::string(20'000, 'a')},  // polynomial
      {"a+?[bc]|a", std::string(500'000, 'a')},    // quadratic, with a match at every start
  };
  for (const auto& [pattern, text] : cases) {
    const auto start = std::chrono::steady_clock::now();
    EXPECT_THROW(all_matches(pattern, text), InputError) << pattern;
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(30)) << pattern;
  }
}

TEST(Regex, LongRunsOfSpacesAreFine) {
  std::string text(300'000, ' ');
  text.push_back('x');
  EXPECT_EQ(all_matches(R"(\s*[\r\n]+|\s+(?!\S)|\s+|\S)", text).size(), 3u);
}

TEST(Regex, DeepBacktrackingGetsALargerStack) {
  const std::string text(50'000, 'a');
  EXPECT_EQ(all_matches("(?:a|b)*", text).front().size(), text.size());
}

}  // namespace
}  // namespace deeptail
