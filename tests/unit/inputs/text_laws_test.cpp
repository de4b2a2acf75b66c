// Laws of text: what they say, with which probability, and what is wrong with a file.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "core/write_file.h"
#include "deeptail/load.h"
#include "deeptail/sampling.h"
#include "law_checks.h"
#include "unit/text/small_tokenizer.h"

namespace deeptail {
namespace {

// Every byte is a token; "ab", " c", "12" are tokens too, and 259 is special: <|x|>.
LawSubject small_subject() {
  Json document = small_tokenizer({{"a", "b"}, {" ", "c"}, {"1", "2"}});
  document["added_tokens"] = Json::array({added_token(259, "<|x|>", {{"special", true}})});
  return {.model_name = "small",
          .folder = "",
          .d_vocab = 260,
          .tokenizer = NamedTokenizer{load_small(document), "sha"}};
}

class TextLaws : public ::testing::Test {
 protected:
  TextLaws() { std::filesystem::create_directories(folder_); }
  ~TextLaws() override { std::filesystem::remove_all(folder_); }

  std::unique_ptr<InputLaw> law(const std::string& rest) const {
    return parse_law(R"({"format":"deeptail-law-1","name":"l",)" + rest + "}", "law.json", folder_,
                     &subject_);
  }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ + "/" + name, std::ios::binary) << text;
  }
  std::string message(const std::string& rest) const {
    try {
      law(rest);
    } catch (const InputError& e) {
      return e.what();
    }
    return "";
  }

  // The probability of every text, by the share of all numbers: each part takes `cells` values in the middle of
  // equal cells, which is exact where they divide its probabilities.
  std::map<std::string, double> probabilities(const InputLaw& l, std::size_t cells) const {
    const std::size_t n_parts = l.facts().n_parts;
    std::size_t n = 1;
    for (std::size_t i = 0; i < n_parts; ++i) n *= cells;
    std::vector<std::uint64_t> parts(n * n_parts);
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t part = 0, rest = i; part < n_parts; ++part, rest /= cells)
        parts[i * n_parts + part] = static_cast<std::uint64_t>((static_cast<double>(rest % cells) + 0.5) /
                                                               static_cast<double>(cells) * 0x1.0p64);
    ThreadPool pool(2);
    Inputs inputs;
    l.make(parts, inputs, pool);
    std::map<std::string, double> out;
    for (std::size_t i = 0; i < n; ++i)
      out[subject_.tokenizer->tokenizer.decode(inputs.sequence(i))] += 1.0 / static_cast<double>(n);
    return out;
  }
  void expect_probabilities(const InputLaw& l, std::size_t cells,
                            const std::map<std::string, double>& expected) const {
    const auto found = probabilities(l, cells);
    ASSERT_EQ(found.size(), expected.size());
    for (const auto& [text, p] : expected) {
      ASSERT_TRUE(found.contains(text)) << text;
      EXPECT_NEAR(found.at(text), p, 1e-12) << text;
    }
  }

  const std::string folder_ = ::testing::TempDir() + "text_laws";
  const LawSubject subject_ = small_subject();
};

TEST_F(TextLaws, PoolsHaveTheirWeights) {
  const auto plain = law(R"("kind":"pool","prompts":["ab a","ab b","ab"])");
  expect_probabilities(*plain, 12, {{"ab a", 1 / 3.0}, {"ab b", 1 / 3.0}, {"ab", 1 / 3.0}});
  EXPECT_EQ(plain->first_position(0), 1u);  // one of them ends there
  EXPECT_EQ(plain->facts().max_length, 3u);
  expect_a_law(*plain);
  const auto weighted = law(R"("kind":"pool","prompts":[{"text":"a","weight":1},{"text":"b","weight":3}])");
  expect_probabilities(*weighted, 12, {{"a", 0.25}, {"b", 0.75}});
  write("p.txt", "one\r\n\ntwo\nthree");
  const auto lines = law(R"("kind":"pool","file":"p.txt")");
  expect_probabilities(*lines, 12, {{"one", 1 / 3.0}, {"two", 1 / 3.0}, {"three", 1 / 3.0}});
  write("p.jsonl", "{\"q\":\"x\\ny\",\"w\":1}\n{\"q\":\"z\",\"w\":2}\n");
  const auto jsonl = law(R"("kind":"pool","file":"p.jsonl","field":"q","weight":"w")");
  expect_probabilities(*jsonl, 12, {{"x\ny", 1 / 3.0}, {"z", 2 / 3.0}});
}

TEST_F(TextLaws, TheHashIsOfAllThatALawIsMadeFrom) {
  write("p.txt", "one\ntwo");
  const std::string first = law(R"("kind":"pool","file":"p.txt")")->facts().sha256;
  EXPECT_EQ(law(R"("kind":"pool","file":"p.txt")")->facts().sha256, first);
  const auto mixed = [&] {
    return law(R"("kind":"mixture","laws":[{"law":{"kind":"pool","file":"p.txt"}}])")->facts().sha256;
  };
  const std::string before = mixed();
  write("p.txt", "one\ntwo!");
  EXPECT_NE(law(R"("kind":"pool","file":"p.txt")")->facts().sha256, first);
  EXPECT_NE(mixed(), before);
}

TEST_F(TextLaws, AConstantIsOnePrompt) {
  const auto one = law(R"("kind":"constant","prompt":"<|x|>ab c","bos":65)");
  ThreadPool pool(1);
  EXPECT_EQ(sample_inputs(*one, 1, 0, 2, pool).tokens,
            (std::vector<TokenId>{65, 259, 256, 257, 65, 259, 256, 257}));
  EXPECT_TRUE(one->free_parts().empty());
  EXPECT_EQ(constant_prefix(*one, pool), (std::vector<TokenId>{65, 259, 256}));
  EXPECT_THROW(check_varies(*one), InputError);
  expect_a_law(*one, 10);
  const auto prompt = law_of_prompt("ab", subject_, {.kind = Bos::Kind::token, .id = 1});
  EXPECT_EQ(sample_inputs(*prompt, 1, 0, 1, pool).tokens, (std::vector<TokenId>{1, 256}));
  EXPECT_THROW(law_of_prompt("", subject_), InputError);
}

TEST_F(TextLaws, PromptsOfAFile) {
  write("p.txt", "a\nb\n");
  expect_probabilities(*law_of_prompts(folder_ + "/p.txt", subject_), 12, {{"a", 0.5}, {"b", 0.5}});
  write("p.jsonl", "{\"prompt\":\"a\",\"weight\":3}\n{\"prompt\":\"b\",\"weight\":1}");
  expect_probabilities(*law_of_prompts(folder_ + "/p.jsonl", subject_), 12, {{"a", 0.75}, {"b", 0.25}});
  write("bad.jsonl", "{\"question\":\"a\"}");
  EXPECT_THROW(law_of_prompts(folder_ + "/bad.jsonl", subject_), InputError);
  EXPECT_THROW(law_of_prompts(folder_ + "/none.txt", subject_), InputError);
}

// Texts are tokenised as a whole: "1" and "2" meet and become one token, and so do " " and "c".
TEST_F(TextLaws, TemplatesJoinTheirTexts) {
  const auto t = law(R"("kind":"template","text":"x {a}{b}{{{a}",
                        "slots":{"a":{"range":[1,2]},"b":{"list":[{"text":"2","weight":3},"c"]}})");
  expect_probabilities(*t, 4, {{"x 12{1", 0.375}, {"x 1c{1", 0.125}, {"x 22{2", 0.375}, {"x 2c{2", 0.125}});
  EXPECT_EQ(t->facts().n_parts, 2u);
  EXPECT_EQ(t->first_position(0), 2u);
  EXPECT_EQ(t->first_position(1), 2u);  // "12" is one token
  EXPECT_EQ(t->facts().max_length, 6u);
  expect_a_law(*t);
  const auto before = law(R"("kind":"template","text":"x {a}","slots":{"a":{"list":["c","d"]}})");
  EXPECT_EQ(before->first_position(0), 1u);  // " c" is one token
}

TEST_F(TextLaws, TemplatesTakeTokensNumbersAndOtherLaws) {
  write("tables.json", R"({"format":"deeptail-distribution-1","name":"d","d_vocab":260,"positions":["t"],
                           "tables":{"t":{"ids":[97,98],"probabilities":[0.75,0.25]}}})");
  const auto tokens = law(R"("kind":"template","text":"{t}b{n}","bos":259,
      "slots":{"t":{"dist":"tables.json","table":"t","count":2},"n":{"range":[8,12],"step":2,"digits":2}})");
  const auto found = probabilities(*tokens, 12);
  EXPECT_EQ(found.size(), 12u);
  EXPECT_NEAR(found.at("<|x|>aab08"), 0.75 * 0.75 / 3, 1e-12);
  EXPECT_NEAR(found.at("<|x|>bab12"), 0.25 * 0.75 / 3, 1e-12);
  ThreadPool pool(1);
  // The token "a" of the slot and the text "b" after it stay apart.
  const Inputs one = sample_inputs(*tokens, 1, 0, 50, pool);
  for (std::size_t i = 0; i < 50; ++i) EXPECT_EQ(one.sequence(i)[3], 'b');
  EXPECT_EQ(tokens->first_position(0), 1u);
  EXPECT_EQ(tokens->first_position(1), 2u);
  EXPECT_EQ(tokens->first_position(2), 4u);
  expect_a_law(*tokens);

  write("inner.json", R"({"format":"deeptail-law-1","kind":"pool","prompts":["<|x|>a","b"]})");
  const auto nested = law(R"("kind":"template","text":"say {w}.","slots":{"w":{"law":"inner.json"}})");
  expect_probabilities(*nested, 12, {{"say a.", 0.5}, {"say b.", 0.5}});
  expect_a_law(*nested);
  const auto ids = law(R"("kind":"template","text":"{i}","slots":{"i":{"ids":[65,66],"count":3}})");
  EXPECT_EQ(probabilities(*ids, 4).size(), 8u);
}

// Too many inputs to look at all: what all begin with is found from some, and holds.
TEST_F(TextLaws, LargeTemplatesKeepTheirPromises) {
  const auto t = law(R"("kind":"template","text":"The number {a} and {b} are <|x|>{w}",
      "slots":{"a":{"range":[0,999999]},"b":{"range":[-50,100000]},"w":{"list":["ab","a","b",""]}})");
  expect_a_law(*t, 1000);
  const std::size_t before_slot = std::string("The number ").size();  // no merges in it
  EXPECT_GE(t->first_position(0) + 2, before_slot);
  EXPECT_LE(t->first_position(0), before_slot);
  EXPECT_GT(t->first_position(2), t->first_position(0) + 4);
  EXPECT_GE(constant_prefix_length(*t) + 3, before_slot);
}

TEST_F(TextLaws, MixturesChooseFirst) {
  const auto m = law(R"("kind":"mixture","laws":[
      {"law":{"kind":"constant","prompt":"ab c"},"weight":1},
      {"law":{"kind":"template","text":"ab {n}","slots":{"n":{"range":[1,3]}}},"weight":3}])");
  expect_probabilities(*m, 12, {{"ab c", 0.25}, {"ab 1", 0.25}, {"ab 2", 0.25}, {"ab 3", 0.25}});
  EXPECT_EQ(m->facts().n_parts, 2u);
  EXPECT_EQ(m->first_position(0), 1u);
  EXPECT_EQ(m->first_position(1), 2u);
  expect_a_law(*m);
}

TEST_F(TextLaws, WhatIsWrongWithAFile) {
  write("loop.json", R"({"format":"deeptail-law-1","kind":"mixture","laws":[{"law":"loop.json"}]})");
  write("other.json", R"({"format":"deeptail-distribution-1","name":"d","d_vocab":9,"positions":["t"],
                          "tables":{"t":{"ids":[1],"probabilities":[1]}}})");
  write("empty.txt", "\n\n");
  const std::pair<const char*, const char*> rows[] = {
      {R"("kind":"templat","prompts":["a"])",
       "expected constant, pool, template, mixture, language_model, found \"templat\"; did you mean "
       "\"template\"?"},
      {R"("kind":"pool")", "a pool has either \"prompts\" or a \"file\""},
      {R"("kind":"pool","prompts":[])", "no texts; expected at least one"},
      {R"("kind":"pool","prompts":["a",""])", "law.json: prompt 2: the prompt is empty"},
      {R"("kind":"pool","prompts":[1])", "key \"prompts[0]\": expected text, found 1"},
      {R"("kind":"pool","prompts":[{"text":"a","weight":0}])", "expected a number above 0, found 0"},
      {R"("kind":"pool","promts":["a"])", "there is no key \"promts\" here"},
      {R"("kind":"pool","prompts":["a"],"bos":"yes")", "expected \"auto\", \"none\" or a token's id"},
      {R"("kind":"pool","prompts":["a"],"bos":999)", "key \"bos\""},
      {R"("kind":"pool","file":"../x.txt")", "the name of a file in the folder of this one"},
      {R"("kind":"pool","file":"/etc/passwd")", "the name of a file in the folder of this one"},
      {R"("kind":"pool","file":"none.txt")", "cannot open"},
      {R"("kind":"pool","file":"empty.txt")", "no texts"},
      {R"("kind":"pool","file":"empty.txt","weight":"w")", "weights are read from JSONL"},
      {R"("kind":"template","text":"a","slots":{})", "a template has at least one slot"},
      {R"("kind":"template","text":"{a","slots":{})", "\"{a\" is no slot"},
      {R"("kind":"template","text":"}","slots":{})", "\"}\" is no slot"},
      {R"("kind":"template","text":"{name}","slots":{"nam":{"range":[1,2]}})",
       "no slot {nam}; did you mean \"name\"?"},
      {R"("kind":"template","text":"{a}{b}","slots":{"a":{"range":[1,2]}})",
       "the slot {b} of the text is missing"},
      {R"("kind":"template","text":"{a}","slots":{"a":{"range":[2,1]}})", "last not below first"},
      {R"("kind":"template","text":"{a}","slots":{"a":{"range":[1]}})", "expected [first, last]"},
      {R"("kind":"template","text":"{a}","slots":{"a":{"range":[1,1e300]}})", "a whole number"},
      {R"("kind":"template","text":"{a}","slots":{"a":{"range":[1,9],"step":0}})",
       "a whole number from 1 on"},
      {R"("kind":"template","text":"{a}","slots":{"a":{}})",
       "one of the keys list, file, range, ids, table, law"},
      {R"("kind":"template","text":"{a}","slots":{"a":{"list":["x"],"range":[1,2]}})",
       "there is no key \"range\" here"},
      {R"("kind":"template","text":"{a}","slots":{"a":{"ids":[999]}})", "ids[0]"},
      {R"("kind":"template","text":"{a}","slots":{"a":{"ids":[1],"count":0}})", "count"},
      {R"("kind":"template","text":"{a}","slots":{"a":{"dist":"other.json","table":"t"}})",
       "a vocabulary of 9 tokens"},
      {R"("kind":"template","text":"{a}","slots":{"a":{"list":["","b"]}})",
       "is empty, and no token goes before it"},
      {R"("kind":"mixture","laws":[])", "at least one law"},
      {R"("kind":"mixture","laws":[{"law":{"kind":"constant","prompt":"a"},"weight":-1}])",
       "a number above 0"},
      {R"("kind":"mixture","laws":[{"law":"loop.json"}])", "laws are made of each other"},
      {R"("kind":"mixture","laws":[{"law":"other.json"}])", "a vocabulary of 9 tokens"},
      {R"("kind":"language_model")", "the prompt is empty"},
      {R"("kind":"language_model","prompt":"a")", "\"max_tokens\" is missing"},
      {R"("kind":"language_model","prompt":"a","max_tokens":2,"stop":["abc"])",
       "one token of the tokenizer"}};
  for (const auto& [rest, part] : rows)
    EXPECT_NE(message(rest).find(part), std::string::npos) << rest << "\n" << message(rest);
}

TEST_F(TextLaws, TextNeedsATokenizer) {
  const std::string text = R"({"format":"deeptail-law-1","kind":"constant","prompt":"a"})";
  EXPECT_THROW(parse_law(text, "law.json"), InputError);
  const LawSubject none{.model_name = "m", .folder = "", .d_vocab = 9};
  EXPECT_THROW(parse_law(text, "law.json", "", &none), InputError);
  EXPECT_THROW(
      parse_law(R"({"format":"deeptail-law-1","kind":"pool","file":"p.txt"})", "law.json", "", &subject_),
      InputError);
}

// Token by token as the logits of a whole run and the numbers say.
TEST(LanguageModelLaw, SaysWhatTheModelSays) {
  const LoadedModel model = load_model(DEEPTAIL_SOURCE "/models/dt-1l");
  const auto law =
      parse_law(R"({"format":"deeptail-law-1","kind":"language_model","prompt":"<|BOS|>The","max_tokens":5,
      "temperature":0.8,"top_p":0.9,"stop":[","]})",
                "law.json", "", std::make_unique<LawSubject>(law_subject(model)).get());
  const std::vector<TokenId> prompt = model.tokenizer->tokenizer.encode("<|BOS|>The");
  ThreadPool pool(2);
  const std::size_t n = 12;
  std::vector<std::uint64_t> parts(n * 5);
  sample_parts(*law, 1, 0, pool, parts);
  Inputs inputs;
  law->make(parts, inputs, pool);
  const std::size_t d_vocab = model.config().d_vocab, d_model = model.config().d_model;
  NextTokenLaw next({.temperature = 0.8, .top_p = 0.9}, d_vocab);
  const TokenId comma = *model.tokenizer->tokenizer.id_of(",");
  for (std::size_t i = 0; i < n; ++i) {
    std::vector<TokenId> text = prompt;
    for (std::size_t t = 0; t < 5; ++t) {
      AlignedVector<float> resid(d_model), scores(d_vocab);
      final_residuals(model.transformer, {text, text.size()}, pool, {resid.data(), d_model});
      logits(model.head(), 1, {resid.data(), d_model}, pool, {scores.data(), d_vocab});
      next.set(scores);
      const TokenId token = next.draw(parts[i * 5 + t]);
      if (token == comma) break;
      text.push_back(token);
    }
    const auto found = inputs.sequence(i);
    EXPECT_EQ(std::vector<TokenId>(found.begin(), found.end()), text);
  }
  EXPECT_EQ(law->first_position(2), prompt.size() + 2);
  expect_a_law(*law, 20);
}

}  // namespace
}  // namespace deeptail
