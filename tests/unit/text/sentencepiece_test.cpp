// The parts of a SentencePiece tokenizer.json one by one: normalizers, Metaspace, bytes of characters, unknown
// ones, decoders, templates.
#include <gtest/gtest.h>

#include <chrono>

#include "deeptail/core.h"
#include "sizes.h"
#include "small_tokenizer.h"
#include "text/byte_token.h"

namespace deeptail {
namespace {

// <unk> 0, <s> 1, then bytes at 3 + byte, then these from 259 on; merges as given.
Json llama(const std::vector<std::string>& entries, const std::vector<std::string>& merges = {}) {
  Json vocab = {{"<unk>", 0}, {"<s>", 1}, {"</s>", 2}};
  for (int byte = 0; byte < 256; ++byte) vocab[byte_token(static_cast<unsigned char>(byte))] = 3 + byte;
  for (std::size_t i = 0; i < entries.size(); ++i) vocab[entries[i]] = 259 + i;
  const Json to_meta = {{"type", "Replace"}, {"pattern", {{"String", " "}}}, {"content", "\u2581"}};
  const Json to_space = {{"type", "Replace"}, {"pattern", {{"String", "\u2581"}}}, {"content", " "}};
  const Json strip = {{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}};
  return {{"added_tokens", Json::array({added_token(1, "<s>")})},
          {"normalizer",
           {{"type", "Sequence"},
            {"normalizers", Json::array({Json{{"type", "Prepend"}, {"prepend", "\u2581"}}, to_meta})}}},
          {"pre_tokenizer", nullptr},
          {"decoder",
           {{"type", "Sequence"},
            {"decoders",
             Json::array({to_space, Json{{"type", "ByteFallback"}}, Json{{"type", "Fuse"}}, strip})}}},
          {"model",
           {{"type", "BPE"},
            {"unk_token", "<unk>"},
            {"byte_fallback", true},
            {"vocab", vocab},
            {"merges", merges}}}};
}

Json metaspace(const char* scheme) {
  return {{"type", "Metaspace"}, {"replacement", "\u2581"}, {"prepend_scheme", scheme}};
}

const std::vector<std::string> kEntries = {"\u2581", "a", "b", "\u2581a", "ab"};  // 259 to 263

TEST(SentencePiece, SpacesBytesAndPrefix) {
  const Tokenizer t = load_small(llama(kEntries, {"\u2581 a", "a b"}));
  EXPECT_EQ(t.encode("ab a"), (Ids{262, 261, 262}));
  EXPECT_EQ(t.encode(" ab"), (Ids{259, 262, 261}));
  EXPECT_EQ(t.encode("\n\u00e9"), (Ids{259, 3 + '\n', 3 + 0xC3, 3 + 0xA9}));
  EXPECT_EQ(t.encode("b<s>b"), (Ids{259, 261, 1, 259, 261}));
  EXPECT_EQ(t.encode(""), (Ids{}));
  EXPECT_EQ(t.encode("\xFF"), (Ids{3 + 0xFF}));
  EXPECT_EQ(t.decode(Ids{262, 261, 262}), "ab a");
  EXPECT_EQ(t.decode(Ids{1, 262}), "<s> a");
  EXPECT_EQ(t.decode(Ids{3 + 0xC3}), "\xC3");
  EXPECT_EQ(t.decode_all(Ids{259, 262, 999}), " a<|id 999|>");
}

TEST(SentencePiece, TokensAsText) {
  const Tokenizer t = load_small(llama(kEntries));
  EXPECT_EQ(t.id_of(" a"), 262);
  EXPECT_EQ(t.id_of("a"), 260);  // not <0x61>, which stands for the same
  EXPECT_EQ(t.id_of("\n"), 3 + '\n');
  EXPECT_EQ(t.id_of("<s>"), 1);
  EXPECT_EQ(t.bytes_of(262), " a");
  EXPECT_EQ(t.bytes_of(3 + 0xC3), "\xC3");
}

TEST(SentencePiece, DecodeInvertsEncodeOnAnyText) {
  const Tokenizer t = load_small(llama(kEntries, {"\u2581 a", "a b"}));
  for (const std::string text : {"a b", " ", "   a\n b ", "\u00e9\u4e00\U0001F600", "ab\tab", "<0x41> <s"})
    EXPECT_EQ(t.decode(t.encode(text)), text);
}

TEST(SentencePiece, WhatHasNoToken) {
  Json document = llama(kEntries);
  for (const char* part : {"normalizer", "pre_tokenizer", "decoder"}) document[part] = nullptr;
  document["model"]["vocab"].erase("<0xA9>");
  EXPECT_EQ(load_small(document).encode("a\u00e9\u00e9b"), (Ids{260, 0, 0, 261}));
  document["model"]["fuse_unk"] = true;
  EXPECT_EQ(load_small(document).encode("a\u00e9\u00e9b"), (Ids{260, 0, 261}));
  document["model"].erase("unk_token");
  try {
    load_small(document).encode("a\u00e9");
    FAIL();
  } catch (const InputError& e) {
    EXPECT_NE(std::string(e.what()).find("the character U+00E9"), std::string::npos) << e.what();
  }
}

TEST(SentencePiece, MetaspaceSchemes) {
  Json document = llama({"\u2581", "a", "b", "\u2581a", "\u2581b"}, {"\u2581 a", "\u2581 b"});
  document["normalizer"] = nullptr;
  const auto encode = [&](const char* scheme, const char* text) {
    document["pre_tokenizer"] = document["decoder"] = metaspace(scheme);
    return load_small(document).encode(text);
  };
  EXPECT_EQ(encode("always", "a b<s>b"), (Ids{262, 263, 1, 263}));
  EXPECT_EQ(encode("first", "a b<s>b"), (Ids{262, 263, 1, 261}));
  EXPECT_EQ(encode("never", "a b<s>b"), (Ids{260, 263, 1, 261}));
  EXPECT_EQ(encode("always", " a"), (Ids{262}));
  document["pre_tokenizer"] = {{"type", "Metaspace"}, {"replacement", "\u2581"}, {"add_prefix_space", false}};
  EXPECT_EQ(load_small(document).encode("a b"), (Ids{260, 263}));
  document["pre_tokenizer"]["add_prefix_space"] = true;
  EXPECT_EQ(load_small(document).encode("a b"), (Ids{262, 263}));
}

TEST(SentencePiece, MetaspaceDecoderDropsSpacesOfTheFirstToken) {
  Json document = llama(kEntries);
  document["decoder"] = metaspace("always");
  EXPECT_EQ(load_small(document).decode(Ids{262, 262}), "a a");
  EXPECT_EQ(load_small(document).decode(Ids{259, 262}), " a");
  document["decoder"] = metaspace("never");
  EXPECT_EQ(load_small(document).decode(Ids{262, 262}), " a a");
}

TEST(SentencePiece, MergesCrossSpacesWithoutAPreTokenizer) {
  const Json document = llama({"\u2581", "a", "a\u2581", "a\u2581a"}, {"a \u2581", "a\u2581 a"});
  EXPECT_EQ(load_small(document).encode("a a"), (Ids{259, 262}));
}

TEST(Template, SaysWhatGoesBefore) {
  Json document = llama(kEntries);
  EXPECT_EQ(load_small(document).bos(), (Ids{}));
  const auto piece = [](const char* id) { return Json{{"SpecialToken", {{"id", id}, {"type_id", 0}}}}; };
  const Json text = {{"Sequence", {{"id", "A"}, {"type_id", 0}}}};
  const Json begin = {{"type", "TemplateProcessing"},
                      {"single", Json::array({piece("<s>"), text, piece("</s>")})},
                      {"special_tokens", {{"<s>", {{"ids", {1}}}}, {"</s>", {{"ids", {2}}}}}}};
  document["post_processor"] = begin;
  const Tokenizer t = load_small(document);
  EXPECT_EQ(t.bos(), (Ids{1}));
  EXPECT_EQ(t.encode("b"), (Ids{259, 261}));
  EXPECT_EQ(t.encode_input("b"), (Ids{1, 259, 261}));
  EXPECT_EQ(t.encode_input("b", {.kind = Bos::Kind::none}), (Ids{259, 261}));
  EXPECT_EQ(t.encode_input("b", {.kind = Bos::Kind::token, .id = 2}), (Ids{2, 259, 261}));
  EXPECT_THROW(t.encode_input("b", {.kind = Bos::Kind::token, .id = 5000}), InputError);
  document["post_processor"] = {{"type", "Sequence"}, {"processors", {byte_level(), begin}}};
  EXPECT_EQ(load_small(document).bos(), (Ids{1}));
  document["post_processor"] = {{"type", "RobertaProcessing"}, {"cls", {"<s>", 1}}, {"sep", {"</s>", 2}}};
  EXPECT_EQ(load_small(document).bos(), (Ids{1}));
}

TEST(Template, TokenizerConfigCountsWhereTheTemplateIsSilent) {
  const auto bos = [](const Json& document, const Json& config) {
    return Tokenizer::parse(json_text(document), "t.json", json_text(config)).bos();
  };
  Json document = llama(kEntries);
  EXPECT_EQ(bos(document, {{"add_bos_token", true}, {"bos_token", "<s>"}}), (Ids{1}));
  EXPECT_EQ(bos(document, {{"add_bos_token", true}, {"bos_token", {{"content", "<s>"}}}}), (Ids{1}));
  EXPECT_EQ(bos(document, {{"add_bos_token", false}, {"bos_token", "<s>"}}), (Ids{}));
  EXPECT_EQ(bos(document, {{"bos_token", "<s>"}}), (Ids{}));
  EXPECT_THROW(bos(document, {{"add_bos_token", true}, {"bos_token", "<zz>"}}), InputError);
  EXPECT_THROW(bos(document, {{"add_bos_token", true}}), InputError);
  document["post_processor"] = {{"type", "TemplateProcessing"},
                                {"single", {{{"Sequence", {{"id", "A"}}}}}},
                                {"special_tokens", Json::object()}};
  EXPECT_EQ(bos(document, {{"add_bos_token", true}, {"bos_token", "<s>"}}), (Ids{}));
}

// 1 MB of one piece: one letter, no spaces, characters that become bytes, spaces.
TEST(SentencePiece, LongTextsAreNotQuadratic) {
  Json document =
      llama({"\u2581", "a", "aa", "aaaa", "\u2581\u2581", "b"}, {"a a", "aa aa", "\u2581 \u2581"});
  for (const bool split : {false, true}) {
    if (split) document["pre_tokenizer"] = metaspace("always");
    const Tokenizer t = load_small(document);
    for (const std::string unit : {"a", "ab", "\u00e9", "a ", "<s>"}) {
      std::string text;
      while (text.size() < sized(std::size_t{1} << 20, std::size_t{1} << 16)) text += unit;
      const auto start = std::chrono::steady_clock::now();
      const Ids ids = t.encode(text);
      t.decode(ids);
      EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10)) << unit;
      EXPECT_GE(ids.size(), text.size() / 8);
    }
  }
}

}  // namespace
}  // namespace deeptail
