#include <gtest/gtest.h>

#include <random>
#include <thread>

#include "deeptail/core.h"
#include "small_tokenizer.h"

namespace deeptail {
namespace {

Tokenizer example() {
  return load_small(small_tokenizer(
      {{"t", "h"}, {"th", "e"}, {" ", "the"}, {" ", " "}, {"\xC3", "\xA9"}, {"a", "a"}, {"aa", "aa"}}));
}

std::string random_bytes(std::mt19937& random, std::size_t length) {
  std::string text;
  while (text.size() < length) {
    switch (random() % 6) {
      case 0:
        text += static_cast<char>(random() % 256);
        break;
      case 1:
        text += "the ";
        break;
      case 2:
        text += "\u00e9\u4e00";
        break;
      case 3:
        text += "aa a";
        break;
      case 4:
        text += static_cast<char>(random() % 128);
        break;
      default:
        text += "\xF0\x9F\x98\x80";
        break;
    }
  }
  return text.substr(0, length);  // may cut a character
}

TEST(Tokenizer, EncodesByHand) {
  const Tokenizer tokenizer = example();
  EXPECT_EQ(tokenizer.encode("the the"), (Ids{257, 258}));
  EXPECT_EQ(tokenizer.encode("  the"), (Ids{' ', 258}));
  EXPECT_EQ(tokenizer.encode("\u00e9aaaaa"), (Ids{260, 262, 'a'}));
  EXPECT_EQ(tokenizer.encode(""), (Ids{}));
  EXPECT_EQ(tokenizer.encode(std::string_view("\0", 1)), (Ids{0}));
}

TEST(Tokenizer, InvalidUtf8IsEncodedByteByByte) {
  const Tokenizer tokenizer = example();
  EXPECT_EQ(tokenizer.encode("the\xFFthe"), (Ids{257, 0xFF, 257}));
  EXPECT_EQ(tokenizer.encode("\xC3\xC3\xA9\xE2\x82"), (Ids{0xC3, 260, 0xE2, 0x82}));
}

TEST(Tokenizer, DecodeInvertsEncodeOnAnyBytes) {
  const Json digits = {{"type", "Digits"}, {"individual_digits", true}};
  std::mt19937 random(7);
  for (const Json& pre_tokenizer :
       {byte_level(), byte_level(false, false), sequence({digits, byte_level()}),
        sequence({split_json("Regex", R"(\s+|\w+)", "MergedWithNext"), byte_level(false, false)})}) {
    Json document = small_tokenizer({{"t", "h"}, {"th", "e"}, {" ", "the"}, {"\xC3", "\xA9"}});
    document["pre_tokenizer"] = pre_tokenizer;
    document["added_tokens"] =
        Json::array({added_token(300, "<s>"), added_token(301, "a a", {{"single_word", true}})});
    const Tokenizer tokenizer = load_small(document);
    for (std::size_t length = 0; length < 300; ++length) {
      const std::string text = random_bytes(random, length);
      ASSERT_EQ(tokenizer.decode(tokenizer.encode(text)), text);
    }
  }
}

TEST(Tokenizer, DecodeOfPiecesIsTheDecodeOfAll) {
  const Tokenizer tokenizer = example();
  std::mt19937 random(8);
  const Ids ids = tokenizer.encode(random_bytes(random, 5000));
  const std::string whole = tokenizer.decode(ids);
  for (const std::size_t chunk : {1u, 2u, 7u, 1000u}) {
    std::string joined;
    for (std::size_t i = 0; i < ids.size(); i += chunk)
      joined += tokenizer.decode(std::span(ids).subspan(i, std::min(chunk, ids.size() - i)));
    EXPECT_EQ(joined, whole);
  }
}

TEST(Tokenizer, IdsAndBytes) {
  Json document = small_tokenizer({{" ", " "}});
  document["model"]["vocab"]["  "] = 257;  // literal spaces: outside the byte alphabet, stand for themselves
  document["model"]["vocab"]["\u4e00"] = 258;
  document["added_tokens"] = Json::array({added_token(260, "<s>")});  // 259 has no token
  const Tokenizer tokenizer = load_small(document);
  EXPECT_EQ(tokenizer.vocab_size(), 261u);
  EXPECT_EQ(tokenizer.id_of("a"), 'a');
  EXPECT_EQ(tokenizer.id_of("  "), 256);  // of two tokens for the same bytes, the one that encode gives
  EXPECT_EQ(tokenizer.encode("  "), (Ids{256}));
  EXPECT_EQ(tokenizer.id_of("\u4e00"), 258);
  EXPECT_EQ(tokenizer.id_of("<s>"), 260);
  EXPECT_EQ(tokenizer.id_of("none"), std::nullopt);
  EXPECT_EQ(tokenizer.bytes_of(0xFF), "\xFF");
  EXPECT_EQ(tokenizer.bytes_of(257), "  ");
  EXPECT_EQ(tokenizer.decode(Ids{260, 258, 'x'}), "<s>\u4e00x");
  for (const TokenId bad : {-1, 259, 261, INT32_MAX}) {
    EXPECT_THROW(tokenizer.bytes_of(bad), InputError) << bad;
    EXPECT_THROW(tokenizer.decode(Ids{'a', bad}), InputError) << bad;
  }
  EXPECT_EQ(tokenizer.decode_all(Ids{'a', 259, 260, 70000, 'b'}), "a<|id 259|><s><|id 70000|>b");
}

TEST(Tokenizer, IgnoreMergesTakesWholeWords) {
  Json document = small_tokenizer({{"h", "i"}});
  document["model"]["vocab"]["hiya"] = 300;
  EXPECT_EQ(load_small(document).encode("hiya"), (Ids{256, 'y', 'a'}));
  document["model"]["ignore_merges"] = true;
  EXPECT_EQ(load_small(document).encode("hiya"), (Ids{300}));
}

TEST(Tokenizer, MergesAsStringsOrPairs) {
  Json document = small_tokenizer({{"h", "i"}, {"hi", " "}});
  const Ids expected = load_small(document).encode("hi hi");
  document["model"]["merges"] = Json::array({"h i", "hi \u0120"});
  EXPECT_EQ(load_small(document).encode("hi hi"), expected);
}

TEST(Tokenizer, NfcChangesTheText) {
  Json document = small_tokenizer();
  document["normalizer"] = {{"type", "Sequence"}, {"normalizers", {{{"type", "NFC"}}}}};
  const Tokenizer tokenizer = load_small(document);
  EXPECT_EQ(tokenizer.decode(tokenizer.encode("e\u0301\xFF")), "\u00e9\xFF");
}

TEST(Tokenizer, PartsThatAreNotApplied) {
  Json document = small_tokenizer();
  document["truncation"] = {{"max_length", 1}};
  document["model"]["unk_token"] = "<unk>";  // never used: every byte has a token
  EXPECT_EQ(load_small(document).encode("ab"), (Ids{'a', 'b'}));
}

TEST(Tokenizer, ManyThreadsMayEncode) {
  const Tokenizer tokenizer = example();
  std::mt19937 random(9);
  const std::string text = random_bytes(random, 20'000);
  const Ids expected = tokenizer.encode(text);
  std::vector<Ids> results(7);
  std::vector<std::thread> threads;
  for (Ids& result : results) threads.emplace_back([&] { result = tokenizer.encode(text); });
  for (std::thread& thread : threads) thread.join();
  for (const Ids& result : results) EXPECT_EQ(result, expected);
}

}  // namespace
}  // namespace deeptail
