#include "text/pre_tokenizer.h"

#include <gtest/gtest.h>

#include <chrono>

#include "sizes.h"
#include "small_tokenizer.h"
#include "text/spec.h"

namespace deeptail {
namespace {

using Pieces = std::vector<std::string>;

Pieces pieces_of(const Json& pre_tokenizer, std::string_view text) {
  const Json root = {{"pre_tokenizer", pre_tokenizer}};
  const PreTokenizer parsed = read_pre_tokenizer(JsonNode(root, "test", ""));
  PieceFinder finder(parsed);
  Pieces pieces;
  finder.for_each_piece(text, true, [&](std::string_view piece) { pieces.emplace_back(piece); });
  return pieces;
}

Pieces split_pieces(const char* kind, std::string_view pattern, std::string_view behavior, bool invert,
                    std::string_view text) {
  return pieces_of(sequence({split_json(kind, pattern, behavior, invert), byte_level(false, false)}), text);
}

TEST(ByteLevel, CutsLikeGpt2) {
  EXPECT_EQ(pieces_of(byte_level(), "Hello my friend, how's 12 days?"),
            (Pieces{"Hello", " my", " friend", ",", " how", "'s", " 12", " days", "?"}));
  // The last of several spaces goes with the word after it; at the end of the text they stay together.
  EXPECT_EQ(pieces_of(byte_level(), "a    b  "), (Pieces{"a", "   ", " b", "  "}));
  EXPECT_EQ(pieces_of(byte_level(), "a\n\n  b"), (Pieces{"a", "\n\n ", " b"}));
  EXPECT_EQ(pieces_of(byte_level(), "I'M 'sure we've"), (Pieces{"I", "'", "M", " '", "sure", " we", "'ve"}));
  // U+180E is not white space, U+0085 is; a number is any \p{N}.
  EXPECT_EQ(pieces_of(byte_level(), "a\u180eb"), (Pieces{"a", "\u180e", "b"}));
  EXPECT_EQ(pieces_of(byte_level(), "a\u0085b"), (Pieces{"a", "\u0085", "b"}));
  EXPECT_EQ(pieces_of(byte_level(), "x\u00b2\u2167 \u0663"), (Pieces{"x", "\u00b2\u2167", " \u0663"}));
  EXPECT_EQ(pieces_of(byte_level(), ""), (Pieces{}));
}

TEST(ByteLevel, PrefixSpace) {
  EXPECT_EQ(pieces_of(byte_level(true), "Hello you"), (Pieces{" Hello", " you"}));
  EXPECT_EQ(pieces_of(byte_level(true), " Hello"), (Pieces{" Hello"}));
  EXPECT_EQ(pieces_of(byte_level(true), "\nHello"), (Pieces{" ", "\n", "Hello"}));
  EXPECT_EQ(pieces_of(byte_level(true, false), "a b"), (Pieces{" a b"}));
  // After another split every piece gets its space.
  const Json digits = {{"type", "Digits"}, {"individual_digits", true}};
  EXPECT_EQ(pieces_of(sequence({digits, byte_level(true)}), "a12"), (Pieces{" a", " 1", " 2"}));
}

TEST(Digits, OneByOneOrTogether) {
  const Json individual = {{"type", "Digits"}, {"individual_digits", true}};
  const Json together = {{"type", "Digits"}, {"individual_digits", false}};
  EXPECT_EQ(pieces_of(sequence({individual, byte_level()}), "Hey 123 \u00bdx"),
            (Pieces{"Hey", " ", "1", "2", "3", " ", "\u00bd", "x"}));
  EXPECT_EQ(pieces_of(sequence({together, byte_level(false, false)}), "Hey 123 x"),
            (Pieces{"Hey ", "123", " x"}));
}

TEST(Split, EveryBehavior) {
  const std::string_view text = "the-final--countdown-";
  const std::pair<const char*, Pieces> cases[] = {
      {"Removed", {"the", "final", "countdown"}},
      {"Isolated", {"the", "-", "final", "-", "-", "countdown", "-"}},
      {"Contiguous", {"the", "-", "final", "--", "countdown", "-"}},
      {"MergedWithPrevious", {"the-", "final-", "-", "countdown-"}},
      {"MergedWithNext", {"the", "-final", "-", "-countdown", "-"}},
  };
  for (const auto& [behavior, expected] : cases) {
    EXPECT_EQ(split_pieces("String", "-", behavior, false, text), expected) << behavior;
    EXPECT_EQ(split_pieces("Regex", "-", behavior, false, text), expected) << behavior;
    EXPECT_EQ(split_pieces("Regex", "[^-]+", behavior, true, text).size(),
              split_pieces("Regex", "-+", behavior, false, text).size())
        << behavior;
  }
}

TEST(Split, Inverted) {
  const std::pair<const char*, Pieces> cases[] = {
      {"Removed", {"How", "are", "you", "doing", "?"}},
      {"Isolated", {"How", " ", "are", " ", "you", " ", "doing", "?"}},
      {"MergedWithPrevious", {"How ", "are ", "you ", "doing", "?"}},
      {"MergedWithNext", {"How", " are", " you", " doing", "?"}},
      {"Contiguous", {"How", " ", "are", " ", "you", " ", "doing?"}},
  };
  for (const auto& [behavior, expected] : cases)
    EXPECT_EQ(split_pieces("Regex", R"(\w+|[^\w\s]+)", behavior, true, "How are you doing?"), expected)
        << behavior;
}

TEST(Split, StringPatternsAreLiteral) {
  EXPECT_EQ(split_pieces("String", ".*", "Removed", false, "a.*b.b"), (Pieces{"a", "b.b"}));
  EXPECT_EQ(split_pieces("String", "(", "Isolated", false, "f(x)"), (Pieces{"f", "(", "x)"}));
}

TEST(Split, EmptyMatchesCut) {
  EXPECT_EQ(split_pieces("Regex", "(?=b)", "Isolated", false, "abab"), (Pieces{"a", "ba", "b"}));
  EXPECT_EQ(split_pieces("String", "", "Isolated", false, "\u00e9a"), (Pieces{"\u00e9", "a"}));
}

TEST(Split, Gpt4StylePattern) {
  const std::string_view pattern =
      R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
  EXPECT_EQ(split_pieces("Regex", pattern, "Isolated", false, "We'VE 12345(ok)!\n\n  x"),
            (Pieces{"We", "'VE", " ", "123", "45", "(ok", ")!\n\n", " ", " x"}));
}

TEST(Sequence, MayBeNested) {
  const Json digits = {{"type", "Digits"}, {"individual_digits", true}};
  const Json inner = sequence({split_json("String", "|", "Removed"), digits});
  EXPECT_EQ(pieces_of(sequence({inner, byte_level()}), "a b|c12"), (Pieces{"a", " b", "c", "1", "2"}));
}

// All splits of a file share the time of one text.
TEST(PreTokenizer, ManySlowSplitsEndWithASentence) {
  Json document = small_tokenizer();
  std::vector<Json> parts(50, split_json("Regex", "(?=(?:a|a){18}c)|b", "Isolated"));
  parts.push_back(byte_level(false, false));
  document["pre_tokenizer"] = sequence(parts);
  const Tokenizer tokenizer = load_small(document);
  const auto start = std::chrono::steady_clock::now();
  try {
    tokenizer.encode(std::string(4000, 'a'));
    FAIL();
  } catch (const InputError& e) {
    EXPECT_STREQ(e.what(),
                 "the tokenizer's pattern \"(?=(?:a|a){18}c)|b\" takes too long on a text of 4000 bytes");
  }
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(sized(4, 20)));
}

}  // namespace
}  // namespace deeptail
