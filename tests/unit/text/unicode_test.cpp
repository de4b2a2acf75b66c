#include "text/unicode.h"

#include <gtest/gtest.h>

#include <chrono>

#include "text/byte_alphabet.h"
#include "text/nfc.h"

namespace deeptail {
namespace {

TEST(ValidUtf8Prefix, StopsAtTheFirstInvalidByte) {
  struct PrefixCase {
    std::string text;
    std::size_t valid;
  };
  const PrefixCase cases[] = {
      {"", 0},
      {"plain ascii, more than eight bytes", 34},
      {"caf\xC3\xA9", 5},
      {"\xE2\x82\xAC\xF0\x9F\x98\x80", 7},
      {"ab\xFF"
       "cd",
       2},
      {"ab\x80", 2},                    // a continuation byte alone
      {"ab\xC3", 2},                    // cut short by the end
      {"ab\xE2\x82", 2},                //
      {"ab\xE2\x82x", 2},               // cut short by another character
      {"\xC0\x80", 0},                  // overlong
      {"\xC1\xBF", 0},                  //
      {"\xE0\x9F\xBF", 0},              //
      {"\xF0\x8F\xBF\xBF", 0},          //
      {"\xED\x9F\xBF\xED\xA0\x80", 3},  // U+D7FF, then a surrogate
      {"\xEF\xBF\xBF", 3},              // U+FFFF
      {"\xF4\x8F\xBF\xBF", 4},          // U+10FFFF
      {"\xF4\x90\x80\x80", 0},          // U+110000
      {"\xF5\x80\x80\x80", 0},
      {std::string("a\0b", 3), 3},
  };
  for (const PrefixCase& c : cases)
    EXPECT_EQ(valid_utf8_prefix(c.text), c.valid) << ::testing::PrintToString(c.text);
}

TEST(CodePoints, ReadForwardsAndBackwards) {
  const std::string text = "a\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80";
  const char32_t points[] = {'a', 0xE9, 0x20AC, 0x1F600};
  std::size_t pos = 0;
  for (const char32_t expected : points) {
    const CodePoint c = code_point_at(text, pos);
    EXPECT_EQ(c.value, expected);
    pos += c.length;
    EXPECT_EQ(code_point_before(text, pos).value, expected);
  }
  EXPECT_EQ(pos, text.size());
}

TEST(CharacterClasses, WordAndWhiteSpace) {
  for (const char32_t c :
       {U'a', U'Z', U'7', U'_', U'\u00e9', U'\u0301', U'\u4e00', U'\u203f', U'\u200d', U'\u24b6', U'\u2167'})
    EXPECT_TRUE(is_word(c)) << static_cast<unsigned>(c);
  for (const char32_t c : {U' ', U'-', U'.', U'\u20ac', U'\u00b2', U'\u200b', U'\n'})
    EXPECT_FALSE(is_word(c)) << static_cast<unsigned>(c);
  for (const char32_t c : {U' ', U'\t', U'\n', U'\v', U'\u0085', U'\u00a0', U'\u2003', U'\u2028', U'\u3000'})
    EXPECT_TRUE(is_white_space(c)) << static_cast<unsigned>(c);
  for (const char32_t c : {U'a', U'\u180e', U'\u200b', U'\ufeff', U'\x1f'})
    EXPECT_FALSE(is_white_space(c)) << static_cast<unsigned>(c);
}

TEST(ByteAlphabet, IsOneToOne) {
  std::string all;
  for (int byte = 0; byte < 256; ++byte) {
    const std::string character = alphabet_character(static_cast<unsigned char>(byte));
    EXPECT_EQ(bytes_from_alphabet(character), std::string(1, static_cast<char>(byte)));
    all += character;
  }
  EXPECT_EQ(bytes_from_alphabet(all)->size(), 256u);
  EXPECT_EQ(alphabet_character(' '), "\u0120");
  EXPECT_EQ(alphabet_character('\n'), "\u010a");
  EXPECT_EQ(alphabet_character(0xAD), "\u0143");
  EXPECT_EQ(bytes_from_alphabet(" "), std::nullopt);
  EXPECT_EQ(bytes_from_alphabet("a\u0144"), std::nullopt);
}

// Expected values from the definition of NFC (Unicode Standard Annex 15).
TEST(Nfc, ComposesAndOrders) {
  const std::pair<const char*, const char*> cases[] = {
      {"plain", "plain"},
      {"e\u0301", "\u00e9"},
      {"\u00e9", "\u00e9"},
      {"q\u0307\u0323", "q\u0323\u0307"},       // marks in order of their class
      {"d\u0307\u0323", "\u1e0d\u0307"},        // ordered, then composed
      {"a\u0323\u0302", "\u1ead"},              // composed twice
      {"\u212b\u2126\u212a", "\u00c5\u03a9K"},  // singletons
      {"\u1100\u1161\u11a8", "\uac01"},         // Hangul
      {"\u0958", "\u0915\u093c"},               // excluded from composition
      {"\ufb1d", "\u05d9\u05b4"},               //
      {"\u304b\u3099", "\u304c"},
      {"e\u0315\u0301", "\u00e9\u0315"},   // the mark between is of another class
      {"\ufb01 \u00bd", "\ufb01 \u00bd"},  // compatibility forms stay
      {"\U0001d15e", "\U0001d157\U0001d165"},
  };
  for (const auto& [text, expected] : cases) EXPECT_EQ(to_nfc(text), expected) << text;
}

TEST(Nfc, LongRunsOfMarksAreNotQuadratic) {
  std::string text = "a";
  for (int i = 0; i < 200'000; ++i) text += "\u0301";
  for (int i = 0; i < 200'000; ++i) text += "\u0323";
  const auto start = std::chrono::steady_clock::now();
  const std::string normalized = to_nfc(text);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
  EXPECT_TRUE(normalized.starts_with(
      "\u1ea1\u0323"));  // a with dot below, and the other marks below before those above
  EXPECT_TRUE(normalized.ends_with("\u0301"));
}

}  // namespace
}  // namespace deeptail
