// Tokenizers made of a vocabulary alone, against those of a tokenizer.json.
#include "text/vocabulary.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <random>

#include "small_tokenizer.h"

namespace deeptail {
namespace {

const std::string kStories = DEEPTAIL_SHARED_DATA "/real/";

Tokenizer made_of(const Vocabulary& vocabulary) {
  return Tokenizer::make(spec_of(vocabulary, "vocab"), "vocab");
}

void expect_no_vocabulary(const Vocabulary& vocabulary, const std::string& fragment) {
  try {
    made_of(vocabulary);
    ADD_FAILURE() << "no error; expected: " << fragment;
  } catch (const InputError& e) {
    const std::string message = e.what();
    EXPECT_TRUE(message.starts_with("vocab: ")) << message;
    EXPECT_NE(message.find(fragment), std::string::npos) << message;
  }
}

// <unk> <s> </s>, 256 bytes, then pieces with falling scores.
Vocabulary small_pieces(const std::vector<std::pair<std::string, float>>& pieces) {
  Vocabulary v;
  const auto add = [&](const std::string& text, TokenType type, float score) {
    v.tokens.push_back(text);
    v.types.push_back(type);
    v.scores.push_back(score);
  };
  add("<unk>", TokenType::unknown, 0);
  add("<s>", TokenType::control, 0);
  add("</s>", TokenType::control, 0);
  for (int byte = 0; byte < 256; ++byte) add(fmt::format("<0x{:02X}>", byte), TokenType::byte, 0);
  for (const auto& [text, score] : pieces) add(text, TokenType::normal, score);
  v.bos = 1;
  return v;
}

TEST(Vocabulary, MergesByScore) {
  Vocabulary v = small_pieces(
      {{"ab", -3}, {"bc", -1}, {"\u2581a", -2}, {"\u2581", -9}, {"a", -9}, {"b", -9}, {"c", -9}});
  const Tokenizer t = made_of(v);
  const auto id = [&](const char* text) { return *t.id_of(text); };
  EXPECT_EQ(t.encode("abc"), (Ids{id(" a"), id("bc")}));
  EXPECT_EQ(t.encode("ab"), (Ids{id(" a"), id("b")}));
  EXPECT_EQ(t.encode("c<s>c"), (Ids{id(" "), id("c"), 1, id(" "), id("c")}));
  EXPECT_EQ(t.encode("\u00e9"), (Ids{id(" "), 3 + 0xC3, 3 + 0xA9}));
  EXPECT_EQ(t.encode_input("c"), (Ids{1, id(" "), id("c")}));
  EXPECT_EQ(t.decode(t.encode("abc c\n\u00e9")), "abc c\n\u00e9");
  v.add_space_prefix = false;
  EXPECT_EQ(made_of(v).encode("ab"), (Ids{id("ab")}));
}

TEST(Vocabulary, EqualScoresGoFromTheLeft) {
  const Vocabulary v =
      small_pieces({{"bc", -1}, {"ab", -1}, {"a", -9}, {"b", -9}, {"c", -9}, {"\u2581", -9}});
  const Tokenizer t = made_of(v);
  EXPECT_EQ(t.encode("abc"), (Ids{*t.id_of(" "), *t.id_of("ab"), *t.id_of("c")}));
}

// The rule itself: of all neighbours whose joint text is a token, the highest score, the leftmost of equals.
Ids encode_by_scores(const Vocabulary& v, const std::string& text) {
  std::vector<std::string> symbols;
  for (const char c : text) symbols.emplace_back(1, c);
  const auto find = [&](const std::string& s) {
    const auto found = std::find(v.tokens.begin(), v.tokens.end(), s);
    return found == v.tokens.end() ? -1 : static_cast<TokenId>(found - v.tokens.begin());
  };
  while (true) {
    std::size_t best = symbols.size();
    for (std::size_t i = 0; i + 1 < symbols.size(); ++i) {
      const TokenId id = find(symbols[i] + symbols[i + 1]);
      if (id < 0) continue;
      const auto score = [&](std::size_t at) {
        return v.scores[static_cast<std::size_t>(find(symbols[at] + symbols[at + 1]))];
      };
      if (best == symbols.size() || score(i) > score(best)) best = i;
    }
    if (best == symbols.size()) break;
    symbols[best] += symbols[best + 1];
    symbols.erase(symbols.begin() + static_cast<std::ptrdiff_t>(best) + 1);
  }
  Ids ids;
  for (const std::string& s : symbols) ids.push_back(find(s));
  return ids;
}

TEST(Vocabulary, AgreesWithTheRuleOnRandomPieces) {
  std::mt19937 random(3);
  const auto letters = [&](std::size_t n) {
    std::string text;
    for (std::size_t i = 0; i < n; ++i) text += "abc"[random() % 3];
    return text;
  };
  for (int round = 0; round < 100; ++round) {
    std::vector<std::pair<std::string, float>> pieces = {{"a", -99}, {"b", -99}, {"c", -99}};
    for (int i = 0; i < 30; ++i) {
      const std::string piece = letters(2 + random() % 4);
      if (std::none_of(pieces.begin(), pieces.end(), [&](const auto& p) { return p.first == piece; }))
        pieces.emplace_back(piece, -static_cast<float>(random() % 8));
    }
    Vocabulary v = small_pieces(pieces);
    v.add_space_prefix = false;
    const Tokenizer t = made_of(v);
    for (const std::size_t n : {3u, 20u, 60u}) {
      const std::string text = letters(n);
      ASSERT_EQ(t.encode(text), encode_by_scores(v, text)) << text;
    }
  }
}

TEST(Vocabulary, ByteLevelAgreesWithItsTokenizerJson) {
  const std::string path = DEEPTAIL_SOURCE "/models/tokenizer.json";
  const Tokenizer expected = Tokenizer::load(path);
  const Json document = parse_json(InputFile(path).text(), path);
  Vocabulary v;
  v.kind = Vocabulary::Kind::byte_level;
  v.pre_tokenizer = "smollm";
  v.tokens.resize(expected.vocab_size());
  for (const auto& [text, id] : document.at("model").at("vocab").items())
    v.tokens[id.get<std::size_t>()] = text;
  v.tokens[0] = "<|BOS|>";
  v.types.assign(v.tokens.size(), TokenType::normal);
  v.types[0] = TokenType::control;
  for (const Json& merge : document.at("model").at("merges"))
    v.merges.push_back(merge.is_string() ? merge.get<std::string>()
                                         : merge[0].get<std::string>() + " " + merge[1].get<std::string>());
  const Tokenizer found = made_of(v);
  for (const std::string text : {"<|BOS|>To be, or not 1234 to be", "  x\n\n\u00e9 \xF0\x9F\x98\x80", ""}) {
    EXPECT_EQ(found.encode(text), expected.encode(text)) << text;
    EXPECT_EQ(found.decode(found.encode(text)), text);
  }
  v.pre_tokenizer = "dizzy";
  expect_no_vocabulary(v, "the pre-tokenizer is \"dizzy\"; supported are gpt-2, ");
  v.pre_tokenizer = "llama-bpe";
  EXPECT_EQ(made_of(v).encode("To be"), expected.encode("To be"));
  v.merges.push_back("a");
  expect_no_vocabulary(v, "merge " + std::to_string(v.merges.size() - 1) + " is \"a\"; expected two tokens");
}

// The tokenizer of stories260K: pieces and scores in a file of llama2.c, merges in a tokenizer.json.
TEST(Vocabulary, ScoresOfStories260kGiveTheIdsOfItsTokenizerJson) {
  const std::string bin = kStories + "stories260K/tok512.bin",
                    json = kStories + "stories260K-hf/tokenizer.json";
  if (!std::filesystem::exists(bin) || !std::filesystem::exists(json)) GTEST_SKIP() << "no " << bin;
  const InputFile file(bin);
  const std::string_view bytes = file.text();
  Vocabulary v;
  for (std::size_t at = 4; at < bytes.size();) {
    float score;
    std::int32_t length;
    std::memcpy(&score, bytes.data() + at, 4);
    std::memcpy(&length, bytes.data() + at + 4, 4);
    const std::string_view text = bytes.substr(at + 8, static_cast<std::size_t>(length));
    at += 8 + static_cast<std::size_t>(length);
    const std::size_t i = v.tokens.size();
    v.tokens.push_back(i == 1 ? "<s>" : i == 2 ? "</s>" : replace_all(text, " ", "\u2581", 1000));
    v.scores.push_back(score);
    v.types.push_back(i == 0    ? TokenType::unknown
                      : i < 3   ? TokenType::control
                      : i < 259 ? TokenType::byte
                                : TokenType::normal);
  }
  v.bos = 1;
  const Tokenizer found = made_of(v), expected = Tokenizer::load(json);
  EXPECT_EQ(found.bos(), expected.bos());
  for (const std::string text :
       {"Once upon a time, there was a little girl named Lily.", "  two  spaces\n", "\u00e9\u4e00!",
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "a<s>b</s> <unk>"}) {
    EXPECT_EQ(found.encode(text), expected.encode(text)) << text;
    EXPECT_EQ(found.decode(found.encode(text)), expected.decode(expected.encode(text))) << text;
  }
}

TEST(Vocabulary, MistakesAreNamed) {
  expect_no_vocabulary(Vocabulary(), "no tokens");
  Vocabulary v = small_pieces({{"a", 0}});
  v.scores.pop_back();
  expect_no_vocabulary(v, "260 tokens and 259 scores");
  v = small_pieces({{"a", 0}});
  v.types.pop_back();
  expect_no_vocabulary(v, "260 tokens and 259 types");
  v = small_pieces({{"\xFF", 0}});
  expect_no_vocabulary(v, "token 259 is");
  v = small_pieces({{"a", std::nanf("")}});
  expect_no_vocabulary(v, "score of token 259 is not a number");
  v = small_pieces({{"a", 0}});
  v.bos = 260;
  expect_no_vocabulary(v, "the token before a text is 260; expected 0 to 259");
}

}  // namespace
}  // namespace deeptail
