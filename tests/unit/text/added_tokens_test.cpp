// Added tokens through a whole tokenizer: bytes are their own ids, so what is not an added token shows as
// text.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "small_tokenizer.h"

namespace deeptail {
namespace {

Tokenizer with_added(std::vector<Json> tokens, const Json& normalizer = nullptr) {
  Json document = small_tokenizer();
  document["added_tokens"] = tokens;
  document["normalizer"] = normalizer;
  return load_small(document);
}

// Text as it stands; an added token as [id].
std::string shown(const Tokenizer& tokenizer, std::string_view text) {
  std::string out;
  for (const TokenId id : tokenizer.encode(text))
    out += id < 256 ? std::string(1, static_cast<char>(id)) : fmt::format("[{}]", id);
  return out;
}

TEST(AddedTokens, LeftmostThenLongest) {
  const Tokenizer tokenizer =
      with_added({added_token(300, "ab"), added_token(301, "abcd"), added_token(302, "bc")});
  EXPECT_EQ(shown(tokenizer, "xabcdx"), "x[301]x");
  EXPECT_EQ(shown(tokenizer, "abcx"), "[300]cx");
  EXPECT_EQ(shown(tokenizer, "xbcd"), "x[302]d");
  EXPECT_EQ(shown(tokenizer, "a bab"), "a b[300]");
  EXPECT_EQ(shown(tokenizer, "ababab"), "[300][300][300]");
}

TEST(AddedTokens, StripWhiteSpace) {
  const Tokenizer tokenizer =
      with_added({added_token(300, "<l>", {{"lstrip", true}}), added_token(301, "<r>", {{"rstrip", true}}),
                  added_token(302, "<b>", {{"lstrip", true}, {"rstrip", true}})});
  EXPECT_EQ(shown(tokenizer, "a <l> b"), "a[300] b");
  EXPECT_EQ(shown(tokenizer, "a <r> b"), "a [301]b");
  EXPECT_EQ(shown(tokenizer, "a \n\t<b>\u3000 b"), "a[302]b");
  EXPECT_EQ(shown(tokenizer, "<r>  <l>"), "[301][300]");
  EXPECT_EQ(shown(tokenizer, "  <b>  <b>  "), "[302][302]");
}

TEST(AddedTokens, OverlapWithWhatWasStripped) {
  const Tokenizer tokenizer = with_added({added_token(300, "<r>", {{"rstrip", true}}), added_token(301, " x"),
                                          added_token(302, "\n", {{"lstrip", true}, {"rstrip", true}})});
  EXPECT_EQ(shown(tokenizer, "<r>  xy"), "[300][301]y");  // as HuggingFace does it: the space counts twice
  EXPECT_EQ(shown(tokenizer, "a\n\n\nb"), "a[302]b");
}

TEST(AddedTokens, ThatAreWhiteSpaceAndStripTakeLinearTime) {
  const std::size_t n = 1'000'000;  // half an hour, if it were quadratic
  const std::string spaces(n, ' ');
  for (const char* flag : {"lstrip", "rstrip"})
    EXPECT_EQ(with_added({added_token(300, " ", {{flag, true}})}).encode(spaces), Ids(n, 300)) << flag;
}

TEST(AddedTokens, SingleWords) {
  const Tokenizer tokenizer = with_added({added_token(300, "cat", {{"single_word", true}})});
  EXPECT_EQ(shown(tokenizer, "cat"), "[300]");
  EXPECT_EQ(shown(tokenizer, "a cat, cats _cat cat-cat"), "a [300], cats _cat [300]-[300]");
  EXPECT_EQ(shown(tokenizer,
                  "cat\u0301 \u4e00"
                  "cat"),
            "cat\u0301 \u4e00"
            "cat");
}

TEST(AddedTokens, NormalizedOrNot) {
  const Json nfc = {{"type", "NFC"}};
  const Tokenizer tokenizer =
      with_added({added_token(300, "caf\u00e9", {{"normalized", true}}), added_token(301, "ne\u0301"),
                  added_token(302, "se\u0301", {{"normalized", true}})},
                 nfc);
  EXPECT_EQ(shown(tokenizer, "caf\u00e9 cafe\u0301"), "[300] [300]");
  EXPECT_EQ(shown(tokenizer, "n\u00e9 ne\u0301"), "n\u00e9 [301]");
  EXPECT_EQ(shown(tokenizer, "s\u00e9 se\u0301"), "[302] [302]");
}

TEST(AddedTokens, CutThePrefixSpaceToo) {
  Json document = small_tokenizer();
  document["pre_tokenizer"] = byte_level(true);
  document["added_tokens"] = Json::array({added_token(300, "<s>")});
  EXPECT_EQ(shown(load_small(document), "a<s>b"), " a[300] b");
}

TEST(AddedTokens, BetweenInvalidBytes) {
  const Tokenizer tokenizer = with_added({added_token(300, "<s>"), added_token(301, "\u4e00")});
  EXPECT_EQ(shown(tokenizer, "\xFF<s>\xC3<s>\xE2\x82\u4e00"), "\xFF[300]\xC3[300]\xE2\x82[301]");
}

TEST(AddedTokens, ThatAreInTheVocabularyKeepTheirId) {
  Json document = small_tokenizer({{"h", "i"}});
  document["added_tokens"] = Json::array({added_token(256, "hi")});
  const Tokenizer tokenizer = load_small(document);
  EXPECT_EQ(tokenizer.encode("thigh"), (Ids{'t', 256, 'g', 'h'}));
  EXPECT_EQ(tokenizer.vocab_size(), 257u);
}

}  // namespace
}  // namespace deeptail
