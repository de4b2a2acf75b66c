// Tokens step as their bytes do: an automaton over tokens accepts what it accepts of the decoded text.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <random>

#include "deeptail/patterns.h"
#include "pcre.h"
#include "sizes.h"
#include "text/unicode.h"
#include "unit/text/small_tokenizer.h"

namespace deeptail {
namespace {

using Tokens = std::vector<TokenId>;

std::vector<std::string> tokenizer_files() {
  const std::string shared = DEEPTAIL_SHARED_DATA "/real/";
  return {DEEPTAIL_SOURCE "/models/tokenizer.json", shared + "stories260K-hf/tokenizer.json",
          shared + "tokenizers/gpt2/tokenizer.json"};
}

// As a user's pipeline shows a text: special tokens left out.
std::string shown(const Tokenizer& t, std::span<const TokenId> tokens) {
  Tokens plain;
  for (const TokenId id : tokens)
    if (!t.is_special(id)) plain.push_back(id);
  return t.decode(plain);
}

struct Run {
  std::uint32_t state;
  bool accepts;
};
Run run(const TokenAutomaton& a, bool of_text, std::span<const TokenId> tokens) {
  std::uint32_t state = a.start(of_text);
  for (const TokenId id : tokens) state = a.next(state)[static_cast<std::size_t>(id)];
  return {state, a.accepts_at_end(state)};
}

// Tokens of a text, with some of them replaced: patterns cut from the text are met, or nearly.
Tokens random_tokens(const Tokenizer& t, std::mt19937& numbers, std::size_t length) {
  Tokens tokens;
  const Tokens text = t.encode("the cat saw the dog and the cat ran; Caf\u00e9 \u4e16 the the end");
  const std::size_t from = numbers() % text.size();
  for (std::size_t i = 0; i < length; ++i) {
    const auto any = static_cast<TokenId>(numbers() % t.vocab_size());
    tokens.push_back(numbers() % 4 == 0 && t.has(any) ? any : text[(from + i) % text.size()]);
  }
  return tokens;
}

void expect_as_decoded(const Tokenizer& t) {
  const TokenTexts texts = token_texts(t, t.vocab_size() + 3);
  std::mt19937 numbers(2);
  for (int i = 0; i < sized(16, 4); ++i) {
    const Tokens prompt = i % 2 == 0 ? t.bos() : random_tokens(t, numbers, 3);
    const Tokens cut = random_tokens(t, numbers, 4);
    const std::string text = shown(t, cut);
    const std::string pattern = text.substr(numbers() % (text.size() / 2 + 1), 1 + numbers() % 6);
    if (pattern.empty()) continue;
    const ByteDfa dfas[] = {contains(pattern), starts_with(text.substr(0, 1 + numbers() % 8))};
    for (const ByteDfa& dfa : dfas) {
      const TokenAutomaton automaton(dfa, texts, {});
      for (int k = 0; k < 50; ++k) {
        Tokens tokens = k % 3 == 0 ? cut : random_tokens(t, numbers, numbers() % 8);
        if (k % 6 == 0) tokens.push_back(random_tokens(t, numbers, 1)[0]);
        Tokens all = prompt;
        all.insert(all.end(), tokens.begin(), tokens.end());
        const std::string before = shown(t, prompt), whole = shown(t, all);
        ASSERT_TRUE(whole.starts_with(before));
        const std::string continuation = whole.substr(before.size());
        EXPECT_EQ(texts.continuation(prompt, tokens), continuation);
        EXPECT_EQ(run(automaton, texts.nothing_in(prompt), tokens).accepts, dfa.accepts(continuation));
      }
    }
  }
}

TEST(TokenAutomaton, AcceptsWhatTheDecodedTextIsAcceptedFor) {
  for (const std::string& file : tokenizer_files()) {
    SCOPED_TRACE(file);
    if (!std::filesystem::exists(file))
      std::printf("skipped: %s is not here\n", file.c_str());
    else
      expect_as_decoded(Tokenizer::load(file));
  }
}

// Regular expressions, with PCRE2 on the decoded text as the judge.
void expect_as_pcre_on_text(const Tokenizer& t) {
  const TokenTexts texts = token_texts(t, t.vocab_size());
  std::mt19937 numbers(3);
  for (const char* regex : {"(cat|dog) (saw|ran)", "\\bthe\\b.*\\bthe$", "^[a-z ]+\\W", "[^ -~]",
                            "(?i)C[A\u00e9]T.", "t.{2,4}c"}) {
    const Pcre pcre(regex);
    const ByteDfa dfa = matches(regex, "test");
    const TokenAutomaton automaton(dfa, texts, {});
    std::size_t n_matches = 0;
    for (int k = 0; k < 60; ++k) {
      const Tokens prompt = k % 2 == 0 ? t.bos() : Tokens{t.encode("so").back()};
      const Tokens tokens = random_tokens(t, numbers, numbers() % 20);
      const std::string text = texts.continuation(prompt, tokens);
      EXPECT_EQ(run(automaton, texts.nothing_in(prompt), tokens).accepts, dfa.accepts(text));
      if (valid_utf8_prefix(text) != text.size()) continue;
      const auto expected = pcre.matches(text);
      ASSERT_TRUE(expected);
      EXPECT_EQ(dfa.accepts(text), *expected) << regex << " in " << text;
      n_matches += *expected;
    }
    EXPECT_GT(n_matches, 0u) << regex;
  }
}

TEST(TokenAutomaton, AcceptsWhatPcreFindsInTheText) {
  for (const std::string& file : tokenizer_files()) {
    SCOPED_TRACE(file);
    if (std::filesystem::exists(file)) expect_as_pcre_on_text(Tokenizer::load(file));
  }
}

// Roots: where a match may begin next, but also where one is waited for.
TEST(TokenAutomaton, RootsAreWhereMostTokensLead) {
  const TokenTexts texts = token_texts(load_small(small_tokenizer()), 256);
  const TokenAutomaton later(matches("a.*b", "test"), texts, {});
  const std::uint32_t waiting = run(later, false, Tokens{'x', 'a'}).state;
  EXPECT_TRUE(later.is_root(later.start()) && later.is_root(waiting));
  EXPECT_NE(waiting, later.start());
  const TokenAutomaton first(starts_with("abc"), texts, {});
  EXPECT_TRUE(first.is_root(first.start()));
  EXPECT_FALSE(first.is_root(run(first, false, Tokens{'a'}).state));
}

TEST(TokenAutomaton, StopTokensEndAText) {
  const Tokenizer t = load_small(small_tokenizer({{"a", "b"}}));
  const TokenTexts texts = token_texts(t, 257);
  const TokenAutomaton a(contains("ab"), texts, Tokens{'.'});
  EXPECT_EQ(a.next(a.start())['.'], a.dead());
  EXPECT_EQ(a.next(a.start())[256], a.accepted());
  EXPECT_EQ(a.next(a.accepted())['.'], a.accepted());
  EXPECT_EQ(run(a, false, Tokens{'a', 'b', 'x', '.'}).state, a.accepted());
  EXPECT_EQ(run(a, false, Tokens{'a', '.', 'a', 'b'}).state, a.dead());
  EXPECT_TRUE(a.is_root(a.start()));
  EXPECT_FALSE(a.is_root(a.next(a.start())['a']));
  EXPECT_FALSE(a.is_root(a.accepted()) || a.is_root(a.dead()));
  EXPECT_EQ(a.n_states(), 4u);
}

TEST(TokenAutomaton, AnyOfSomeTokens) {
  const TokenAutomaton a = TokenAutomaton::any_of(Tokens{3, 5}, 8, Tokens{5, 6});
  EXPECT_EQ(run(a, false, Tokens{1, 2, 3}).state, a.accepted());
  EXPECT_EQ(run(a, true, Tokens{5}).state, a.accepted());
  EXPECT_EQ(run(a, false, Tokens{6, 3}).state, a.dead());
  EXPECT_EQ(run(a, false, Tokens{1, 1}).state, a.start());
  EXPECT_TRUE(a.is_root(a.start()));
  EXPECT_THROW(TokenAutomaton::any_of(Tokens{8}, 8, {}), InputError);
  EXPECT_THROW(TokenAutomaton::any_of(Tokens{1}, 8, Tokens{-1}), InputError);
}

TEST(TokenAutomaton, WhatNoTokensWriteIsDeadAtTheStart) {
  const TokenTexts texts{.text = {"a", "ab", ""}, .first = {}};
  EXPECT_EQ(TokenAutomaton(contains("ac"), texts, {}).start(), TokenAutomaton::dead());
  EXPECT_GT(TokenAutomaton(contains("ba"), texts, {}).start(), TokenAutomaton::dead());
}

// The first token that has text loses its space, also after tokens that have none.
TEST(TokenAutomaton, TheFirstTokenOfATextIsItsOwn) {
  const TokenTexts texts{.text = {" a", "a", "", " "}, .first = {"a", "a", "", ""}};
  const TokenAutomaton a(starts_with("a"), texts, {});
  EXPECT_TRUE(run(a, true, Tokens{0}).accepts);
  EXPECT_TRUE(run(a, true, Tokens{2, 0}).accepts);
  EXPECT_TRUE(run(a, true, Tokens{3, 1}).accepts);
  EXPECT_FALSE(run(a, true, Tokens{3, 0}).accepts);
  EXPECT_FALSE(run(a, false, Tokens{0}).accepts);
  EXPECT_TRUE(run(a, false, Tokens{2, 1}).accepts);
}

TEST(TokenAutomaton, TextsThatAreMadeAsAWholeAreRefused) {
  Json document = small_tokenizer();
  document["decoder"] = {
      {"type", "Sequence"},
      {"decoders", Json::array({Json{{"type", "ByteLevel"}},
                                Json{{"type", "Strip"}, {"content", " "}, {"start", 0}, {"stop", 1}}})}};
  EXPECT_THROW(token_texts(load_small(document), 256), InputError);
}

}  // namespace
}  // namespace deeptail
