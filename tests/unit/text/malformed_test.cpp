// Files that are wrong, or ask for what is not supported: each gets a sentence that names file, key and
// finding.
#include <gtest/gtest.h>

#include <functional>

#include "deeptail/core.h"
#include "small_tokenizer.h"

namespace deeptail {
namespace {

void expect_message(const std::string& json, const std::string& fragment) {
  try {
    Tokenizer::parse(json, "file.json");
    ADD_FAILURE() << "no error; expected: " << fragment;
  } catch (const InputError& e) {
    const std::string message = e.what();
    EXPECT_TRUE(message.starts_with("file.json: ")) << message;
    EXPECT_NE(message.find(fragment), std::string::npos) << message << "\n  expected: " << fragment;
    EXPECT_LT(message.size(), 600u) << message;
  }
}

struct Case {
  const char* fragment;
  std::function<void(Json&)> spoil;
};

void expect_messages(const std::vector<Case>& cases) {
  for (const Case& c : cases) {
    Json document = small_tokenizer({{"a", "b"}});
    c.spoil(document);
    expect_message(json_text(document), c.fragment);
  }
}

TEST(MalformedTokenizer, NotADocument) {
  expect_message("", "not valid JSON");
  expect_message("{", "not valid JSON");
  expect_message("[]", "expected an object, found []");
  expect_message("{}", "key \"model\" is missing");
  expect_message("{\"model\": null}", "model\": expected an object");
  expect_message("{\"version\": \"2.0\"}", "version\": expected \"1.0\"");
}

TEST(MalformedTokenizer, Model) {
  expect_messages({
      {"model.type\": found \"WordPiece\"; only \"BPE\" is supported",
       [](Json& j) { j["model"]["type"] = "WordPiece"; }},
      {"model.type\": expected text", [](Json& j) { j["model"]["type"] = 3; }},
      {"model.dropout\": found 0.1; only null", [](Json& j) { j["model"]["dropout"] = 0.1; }},
      {"byte_fallback true and a ByteLevel pre-tokenizer are not supported together",
       [](Json& j) { j["model"]["byte_fallback"] = true; }},
      {"model.byte_fallback\": expected true or false", [](Json& j) { j["model"]["byte_fallback"] = "no"; }},
      {"model.continuing_subword_prefix\": found \"##\"; only",
       [](Json& j) { j["model"]["continuing_subword_prefix"] = "##"; }},
      {"model.end_of_word_suffix\": found \"</w>\"; only",
       [](Json& j) { j["model"]["end_of_word_suffix"] = "</w>"; }},
      {"model.unk_token\": expected text", [](Json& j) { j["model"]["unk_token"] = 0; }},
      {"key \"model.vocab\" is missing", [](Json& j) { j["model"].erase("vocab"); }},
      {"key \"model.merges\" is missing", [](Json& j) { j["model"].erase("merges"); }},
      {"model.vocab\": expected an object", [](Json& j) { j["model"]["vocab"] = Json::array({1}); }},
      {"model.vocab\": no tokens", [](Json& j) { j["model"]["vocab"] = Json::object(); }},
      {"key \"zz\": expected a token id from 0 to 2147483647, found -1",
       [](Json& j) { j["model"]["vocab"]["zz"] = -1; }},
      {"key \"zz\": expected a token id from 0 to 2147483647, found 1.5",
       [](Json& j) { j["model"]["vocab"]["zz"] = 1.5; }},
      {"key \"zz\": expected a token id from 0 to 2147483647, found \"7\"",
       [](Json& j) { j["model"]["vocab"]["zz"] = "7"; }},
      {"key \"zz\": expected a token id from 0 to 2147483647, found 4294967296",
       [](Json& j) { j["model"]["vocab"]["zz"] = 4294967296; }},
      {"too far beyond the 258 tokens", [](Json& j) { j["model"]["vocab"]["zz"] = 2000000000; }},
      {"have the same id 97; ids must be unique", [](Json& j) { j["model"]["vocab"]["zz"] = 97; }},
      {"the empty text is no token", [](Json& j) { j["model"]["vocab"][""] = 300; }},
  });
}

TEST(MalformedTokenizer, Merges) {
  expect_messages({
      {"model.merges\": expected an array", [](Json& j) { j["model"]["merges"] = Json::object(); }},
      {"model.merges[1]\": expected two tokens", [](Json& j) { j["model"]["merges"].push_back("abc"); }},
      {"model.merges[1]\": expected two tokens", [](Json& j) { j["model"]["merges"].push_back("a b c"); }},
      {"model.merges[1]\": expected two tokens",
       [](Json& j) { j["model"]["merges"].push_back(Json::array({"a"})); }},
      {"model.merges[1]\": expected two tokens",
       [](Json& j) {
         j["model"]["merges"].push_back(Json::array({1, 2}));
       }},
      {"model.merges[1]\": its left part \"xx\" is not in the vocabulary",
       [](Json& j) { j["model"]["merges"].push_back("xx a"); }},
      {"model.merges[1]\": its right part \"xx\" is not in the vocabulary",
       [](Json& j) {
         j["model"]["merges"].push_back(Json::array({"a", "xx"}));
       }},
      {"model.merges[1]\": its result \"ac\" is not in the vocabulary",
       [](Json& j) { j["model"]["merges"].push_back("a c"); }},
      {"model.merges[1]\": its left part \"\" is not in the vocabulary",
       [](Json& j) { j["model"]["merges"].push_back(" a"); }},
  });
}

TEST(MalformedTokenizer, AddedTokens) {
  const auto add = [](Json token) { return [token](Json& j) { j["added_tokens"].push_back(token); }; };
  expect_messages({
      {"added_tokens\": expected an array", [](Json& j) { j["added_tokens"] = 7; }},
      {"added_tokens[0]\": expected an object", add("<s>")},
      {"key \"added_tokens[0].id\" is missing", add({{"content", "<s>"}})},
      {"key \"added_tokens[0].content\" is missing", add({{"id", 300}})},
      {"added_tokens[0].id\": expected a token id", add(added_token(-3, "<s>"))},
      {"added_tokens[0].lstrip\": expected true or false", add(added_token(300, "<s>", {{"lstrip", 1}}))},
      {"added_tokens[0]\": the content has 0 bytes", add(added_token(300, ""))},
      {"added_tokens[0]\": the content has 5000 bytes", add(added_token(300, std::string(5000, 'x')))},
      {"tokens \"a\" and \"<s>\" have the same id 97", add(added_token(97, "<s>"))},
      {"\"ab\" has id 300 here and id 256 in model.vocab", add(added_token(300, "ab"))},
      {"added_tokens[1]\": \"<s>\" was already given by added_tokens[0]",
       [](Json& j) {
         j["added_tokens"] = {added_token(300, "<s>"), added_token(301, "<s>")};
       }},
      {"too far beyond", add(added_token(1'000'000, "<s>"))},
  });
}

TEST(MalformedTokenizer, Pipeline) {
  expect_messages({
      {"normalizer.type\": found \"NFKC\"; supported are NFC",
       [](Json& j) {
         j["normalizer"] = {{"type", "NFKC"}};
       }},
      {"normalizer.normalizers[1].type\": found \"Lowercase\"",
       [](Json& j) {
         j["normalizer"] = {{"type", "Sequence"},
                            {"normalizers", {{{"type", "NFC"}}, {{"type", "Lowercase"}}}}};
       }},
      {"key \"normalizer.type\" is missing", [](Json& j) { j["normalizer"] = Json::object(); }},
      {"pre_tokenizer.type\": found \"Whitespace\"; supported are ByteLevel",
       [](Json& j) {
         j["pre_tokenizer"] = {{"type", "Whitespace"}};
       }},
      {"key \"pre_tokenizer.add_prefix_space\" is missing",
       [](Json& j) {
         j["pre_tokenizer"] = {{"type", "ByteLevel"}};
       }},
      {"pre_tokenizer.pretokenizers[1]\": follows ByteLevel",
       [](Json& j) {
         j["pre_tokenizer"] = sequence({byte_level(), {{"type", "Digits"}, {"individual_digits", true}}});
       }},
      {"pre_tokenizer.pretokenizers\": expected an array",
       [](Json& j) {
         j["pre_tokenizer"] = {{"type", "Sequence"}, {"pretokenizers", 5}};
       }},
      {"pretokenizers[0].individual_digits\" is missing",
       [](Json& j) {
         j["pre_tokenizer"] = sequence({{{"type", "Digits"}}});
       }},
      {"behavior\": expected Removed",
       [](Json& j) { j["pre_tokenizer"] = sequence({split_json("String", " ", "Sideways")}); }},
      {"pattern\": expected {\"Regex\"",
       [](Json& j) { j["pre_tokenizer"] = sequence({split_json("Glob", "*", "Isolated")}); }},
      {"pre_tokenizer.pretokenizers[0].pattern.Regex\": the pattern \"(\" cannot be compiled",
       [](Json& j) { j["pre_tokenizer"] = sequence({split_json("Regex", "(", "Isolated")}); }},
      {"at most 16384 are supported",
       [](Json& j) {
         j["pre_tokenizer"] = sequence({split_json("Regex", std::string(20'000, 'a'), "Isolated")});
       }},
      {"post_processor.type\": found \"BertProcessing\"",
       [](Json& j) {
         j["post_processor"] = {{"type", "BertProcessing"}};
       }},
      {"decoder.type\": found \"CTC\"; supported are ByteFallback",
       [](Json& j) {
         j["decoder"] = {{"type", "CTC"}};
       }},
  });
}

Json decoders(std::vector<Json> parts) { return {{"type", "Sequence"}, {"decoders", std::move(parts)}}; }

TEST(MalformedTokenizer, PartsOfSentencePiece) {
  const auto normalizer = [](Json part) { return [part](Json& j) { j["normalizer"] = part; }; };
  const auto pre_tokenizer = [](Json part) { return [part](Json& j) { j["pre_tokenizer"] = part; }; };
  const auto decoder = [](Json part) { return [part](Json& j) { j["decoder"] = part; }; };
  expect_messages({
      {"key \"normalizer.prepend\" is missing", normalizer({{"type", "Prepend"}})},
      {"normalizer.prepend\": expected a text of at most 64 bytes",
       normalizer({{"type", "Prepend"}, {"prepend", std::string(65, 'x')}})},
      {"normalizer.pattern.String\": expected text that is not empty",
       normalizer({{"type", "Replace"}, {"pattern", {{"String", ""}}}, {"content", "x"}})},
      {"normalizer.content\": expected no $",
       normalizer({{"type", "Replace"}, {"pattern", {{"Regex", "(a)"}}}, {"content", "$1"}})},
      {"normalizer.pattern\": expected {\"Regex\"",
       normalizer({{"type", "Replace"}, {"pattern", {{"Glob", "*"}}}, {"content", "x"}})},
      {"key \"pre_tokenizer.replacement\" is missing", pre_tokenizer({{"type", "Metaspace"}})},
      {"pre_tokenizer.replacement\": expected one character",
       pre_tokenizer({{"type", "Metaspace"}, {"replacement", "__"}})},
      {"pre_tokenizer.replacement\": expected one character",
       pre_tokenizer({{"type", "Metaspace"}, {"replacement", ""}})},
      {"pre_tokenizer.prepend_scheme\": expected always, first or never",
       pre_tokenizer({{"type", "Metaspace"}, {"replacement", "_"}, {"prepend_scheme", "last"}})},
      {"pre_tokenizer.prepend_scheme\": expected never, as add_prefix_space is false",
       pre_tokenizer({{"type", "Metaspace"},
                      {"replacement", "_"},
                      {"prepend_scheme", "first"},
                      {"add_prefix_space", false}})},
      {"a Metaspace with prepend_scheme \"first\" is supported only with",
       [](Json& j) {
         j["normalizer"] = {{"type", "Prepend"}, {"prepend", "_"}};
         j["pre_tokenizer"] = {{"type", "Metaspace"}, {"replacement", "_"}, {"prepend_scheme", "first"}};
       }},
      {"pretokenizers[63]\": more than 64 parts",
       pre_tokenizer(sequence(std::vector<Json>(70, split_json("String", " ", "Isolated"))))},
      {"decoder.pattern\": expected {\"String\"",
       decoder({{"type", "Replace"}, {"pattern", {{"Regex", "a"}}}, {"content", "x"}})},
      {"decoder.decoders[1]\": follows ByteFallback",
       decoder(decoders(
           {{{"type", "ByteFallback"}}, {{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}}}))},
      {"decoder.start\": expected a whole number",
       decoder({{"type", "Strip"}, {"content", " "}, {"start", -1}, {"stop", 0}})},
  });
}

TEST(MalformedTokenizer, Templates) {
  const auto single = [](Json pieces, Json special = Json::object()) {
    return [=](Json& j) {
      j["post_processor"] = {{"type", "TemplateProcessing"}, {"single", pieces}, {"special_tokens", special}};
    };
  };
  const Json token = {{"SpecialToken", {{"id", "<s>"}}}}, text = {{"Sequence", {{"id", "A"}}}};
  const Json known = {{"<s>", {{"ids", {97}}}}};
  expect_messages({
      {"post_processor.single\": expected a Sequence among its pieces", single(Json::array())},
      {"post_processor.single\": expected a Sequence among its pieces", single(Json::array({token}), known)},
      {"single[0].SpecialToken.id\": expected a key of special_tokens", single(Json::array({token, text}))},
      {"single[0]\": expected a SpecialToken or a Sequence", single(Json::array({Json::object()}))},
      {"single[0]\": expected an object", single(Json::array({"<s>"}))},
      {"ids[0]\": expected a token id", single(Json::array({token, text}), {{"<s>", {{"ids", {-1}}}}})},
      {"the token before a text is 5000, for which there is no token",
       single(Json::array({token, text}), {{"<s>", {{"ids", {5000}}}}})},
      {"special tokens before a text; at most 16",
       single(Json::array({token, text}), {{"<s>", {{"ids", Json(std::vector<int>(17, 97))}}}})},
      {"post_processor.cls\": expected [token, id]",
       [](Json& j) {
         j["post_processor"] = {{"type", "RobertaProcessing"}, {"cls", {1}}};
       }},
  });
}

TEST(MalformedTokenizer, TextsThatGrowWithoutEnd) {
  Json document = small_tokenizer();
  const Json doubled = {{"type", "Replace"}, {"pattern", {{"String", "a"}}}, {"content", "aa"}};
  document["normalizer"] = {{"type", "Sequence"}, {"normalizers", std::vector<Json>(40, doubled)}};
  EXPECT_THROW(load_small(document).encode("a"), InputError);
}

TEST(MalformedTokenizer, MissingFile) {
  EXPECT_THROW(Tokenizer::load("/nonexistent/tokenizer.json"), InputError);
}

}  // namespace
}  // namespace deeptail
