// Automata of strings: as std::string says, for all texts of a small alphabet.
#include <gtest/gtest.h>

#include "deeptail/patterns.h"
#include "random_text.h"

namespace deeptail {
namespace {

// Every state leads somewhere for every byte; accepting ones stay.
void expect_complete(const ByteDfa& dfa) {
  ASSERT_EQ(dfa.accepting.size(), dfa.size());
  ASSERT_EQ(dfa.accepting_at_end.size(), dfa.size());
  ASSERT_LT(dfa.start, dfa.size());
  for (std::size_t state = 0; state < dfa.size(); ++state)
    for (const std::uint32_t next : dfa.next[state]) {
      ASSERT_LT(next, dfa.size());
      if (dfa.accepting[state]) {
        ASSERT_EQ(next, state);
      }
    }
}

TEST(Strings, ContainAndStart) {
  std::mt19937 numbers(1);
  for (int i = 0; i < 300; ++i) {
    const std::string pattern = "a" + random_text(numbers, 5, "ab");
    const ByteDfa in = contains(pattern), before = starts_with(pattern);
    expect_complete(in);
    expect_complete(before);
    EXPECT_EQ(in.size(), pattern.size() + 1);  // the least there can be
    for (int k = 0; k < 50; ++k) {
      const std::string text = random_text(numbers, 12, "aab\xFF");
      EXPECT_EQ(in.accepts(text), text.find(pattern) != std::string::npos) << pattern << " in " << text;
      EXPECT_EQ(before.accepts(text), text.starts_with(pattern)) << pattern << " before " << text;
    }
  }
}

TEST(Strings, AMatchIsFound) {
  const ByteDfa dfa = contains("abab");
  EXPECT_FALSE(find_match(dfa, "abbab"));
  const auto found = find_match(dfa, "aababab");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->begin, 1u);
  EXPECT_EQ(found->end, 5u);
}

TEST(Strings, NoneAndTooMuchAreRefused) {
  EXPECT_THROW(contains(""), InputError);
  EXPECT_THROW(starts_with(""), InputError);
  EXPECT_EQ(contains(std::string(kMaxDfaStates - 1, 'a')).size(), kMaxDfaStates);
  EXPECT_THROW(contains(std::string(kMaxDfaStates, 'a')), InputError);
  EXPECT_THROW(starts_with(std::string(kMaxDfaStates - 1, 'a')), InputError);
}

}  // namespace
}  // namespace deeptail
