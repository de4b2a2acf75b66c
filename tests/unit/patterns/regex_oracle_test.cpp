// Regular expressions against PCRE2, on random expressions and random bytes.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "deeptail/patterns.h"
#include "pcre.h"
#include "random_text.h"
#include "sizes.h"
#include "text/unicode.h"

namespace deeptail {
namespace {

using Numbers = std::mt19937;

const std::vector<std::string> kAtoms = {"a",
                                         "b",
                                         "c",
                                         "ab",
                                         ".",
                                         "\u00e9",
                                         "\u4e16",
                                         "[ab]",
                                         "[^a]",
                                         "[a-c]",
                                         "\\d",
                                         "\\w",
                                         "\\s",
                                         "\\D",
                                         "\\W",
                                         "\\S",
                                         "\\.",
                                         "[\\d_]",
                                         "[^\\w\u00e9]",
                                         "[\u00e0-\u4e20]",
                                         "^",
                                         "$",
                                         "\\b",
                                         "\\B",
                                         "\\x41",
                                         "\\n",
                                         "[]a]",
                                         "[^]b-]",
                                         "\\x{1F600}",
                                         "-",
                                         "A",
                                         "(?i)",
                                         "(?-i)",
                                         "(?i:ab)",
                                         "(?s:.)",
                                         "[B-b]",
                                         "\\A",
                                         "\\z",
                                         "{",
                                         "}"};
const std::vector<std::string> kQuantifiers = {"*",     "+",    "?",  "{2}", "{1,3}",
                                               "{0,2}", "{2,}", "*?", "+?",  "{1,2}?"};

std::string random_regex(Numbers& numbers, int depth) {
  std::string out;
  const std::size_t n = 1 + numbers() % 4;
  for (std::size_t i = 0; i < n; ++i) {
    std::string part;
    if (depth > 0 && numbers() % 3 == 0)
      part = (numbers() % 2 == 0 ? "(" : "(?:") + random_regex(numbers, depth - 1) + ")";
    else
      part = kAtoms[numbers() % kAtoms.size()];
    static const std::set<std::string> never_repeated = {"(?i)", "(?-i)", "^",   "$",
                                                         "\\b",  "\\B",   "\\A", "\\z"};
    const bool has_quantifier = numbers() % 3 == 0 && !never_repeated.contains(part);
    out += part + (has_quantifier ? kQuantifiers[numbers() % kQuantifiers.size()] : "");
    if (depth > 0 && numbers() % 6 == 0) out += "|";
  }
  return out;
}

std::string random_bytes(Numbers& numbers) {
  static const std::vector<std::string> pieces = {
      "a", "b", "c", "A",      "B",      "_",          "1",    " ",    "\n",   ".", "-",
      "]", "{", "}", "\u00e9", "\u4e16", "\U0001F600", "\xC3", "\xFF", "\x80", "ab"};
  std::string text;
  for (std::size_t i = numbers() % 9; i > 0; --i) text += pieces[numbers() % pieces.size()];
  return text;
}

// No two states accept the same texts, and all are reached (Moore).
bool is_least(const ByteDfa& dfa) {
  std::vector<std::uint32_t> group(dfa.accepting_at_end.begin(), dfa.accepting_at_end.end());
  std::size_t n_groups = 0;
  while (true) {
    std::map<std::vector<std::uint32_t>, std::uint32_t> made;
    std::vector<std::uint32_t> next_group(dfa.size());
    for (std::size_t s = 0; s < dfa.size(); ++s) {
      std::vector<std::uint32_t> key = {group[s]};
      for (const std::uint32_t next : dfa.next[s]) key.push_back(group[next]);
      next_group[s] = made.try_emplace(key, static_cast<std::uint32_t>(made.size())).first->second;
    }
    group = next_group;
    if (made.size() == n_groups) break;
    n_groups = made.size();
  }
  std::vector<bool> reached(dfa.size(), false);
  std::vector<std::uint32_t> stack = {dfa.start};
  while (!stack.empty()) {
    const std::uint32_t s = stack.back();
    stack.pop_back();
    if (reached[s]) continue;
    reached[s] = true;
    stack.insert(stack.end(), dfa.next[s].begin(), dfa.next[s].end());
  }
  return n_groups == dfa.size() && std::find(reached.begin(), reached.end(), false) == reached.end();
}

void expect_as_pcre(const std::string& regex, const ByteDfa& dfa, Numbers& numbers) {
  const Pcre pcre(regex);
  ASSERT_TRUE(pcre.is_valid()) << regex;
  const bool speaks_of_places = regex.find_first_of("^$BAzb") != regex.npos;
  for (int k = 0; k < 40; ++k) {
    const std::string text = random_bytes(numbers);
    // PCRE2 takes the places around bytes that are no UTF-8 for ends, where it does not take the end for one.
    if (speaks_of_places && valid_utf8_prefix(text) != text.size()) continue;
    // Letters of either case are those of English here; PCRE2 takes \u00c0, which two pieces may make, for \u00e0.
    if (regex.find("(?i") != regex.npos && text.find("\u00c0") != text.npos) continue;
    const auto expected = pcre.matches(text);
    if (!expected) continue;
    ASSERT_EQ(dfa.accepts(text), *expected) << regex << "\n in \"" << testing::PrintToString(text) << "\"";
    const auto found = find_match(dfa, text);
    ASSERT_EQ(found.has_value(), *expected);
    if (!found) continue;
    ASSERT_TRUE(found->begin <= found->end && found->end <= text.size());
    ASSERT_TRUE(dfa.accepts(text.substr(found->begin, found->end - found->begin)) || found->begin == 0);
  }
}

TEST(RegexOracle, RandomExpressionsMatchWhatPcreMatches) {
  Numbers numbers(7);
  const int n = sized(2500, 250);
  int refused = 0, checked = 0;
  for (int i = 0; i < n; ++i) {
    const std::string regex = random_regex(numbers, 3);
    try {
      const ByteDfa dfa = matches(regex, "test");
      expect_as_pcre(regex, dfa, numbers);
      if (HasFatalFailure()) return;
      for (std::size_t s = 0; s < dfa.size(); ++s)
        for (const std::uint32_t next : dfa.next[s]) {
          ASSERT_TRUE(!dfa.accepting[s] || next == s) << regex;
        }
      if (dfa.size() <= 40 && ++checked % 5 == 0) {
        ASSERT_TRUE(is_least(dfa)) << regex;
      }
    } catch (const InputError& e) {
      ++refused;
      // A repetition that is repeated, or an automaton that grows too large.
      const std::string what = e.what();
      EXPECT_TRUE(what.find("repe") != what.npos || what.find("automaton") != what.npos) << what;
    }
  }
  EXPECT_LT(refused, n / 4);
  EXPECT_GT(checked, n / 4);
}

// Any characters of the syntax in any order: what is read at all, PCRE2 reads too, and alike.
TEST(RegexOracle, NoiseThatIsReadMeansTheSame) {
  Numbers numbers(8);
  int read = 0;
  for (int i = 0, n = sized(12000, 1000); i < n; ++i) {
    const std::string regex = random_text(numbers, 9, "aab()[]|*+?{}12,^$\\-.:idswbnxBAz");
    try {
      const ByteDfa dfa = matches(regex, "test");
      ++read;
      if (read % 4 == 0) expect_as_pcre(regex, dfa, numbers);
      if (HasFatalFailure()) return;
    } catch (const InputError&) {
    }
  }
  EXPECT_GT(read, sized(1000, 50));
}

}  // namespace
}  // namespace deeptail
