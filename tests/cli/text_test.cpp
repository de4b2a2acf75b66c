// Text in place of token ids: tokenize, detokenize, samples, logits, distributions.
#include "cli/run_binary.h"

namespace deeptail {
namespace {

class TextTest : public CliTest {};

TEST_F(TextTest, TokenizeAndDetokenizeAreInverse) {
  EXPECT_EQ(run("model tokenize --model dt-1l '<|BOS|>To be' ' the'").out, "0 3595 377\n293\n");
  EXPECT_EQ(run("model detokenize --model dt-1l 0 3595, 377").out, "<|BOS|>To be\n");
  EXPECT_EQ(run("model tokenize --model dt-1l - < '" + write("in", "To be\n\na\x1b b\n") + "'").code, 0);
  const std::string ids = run("model tokenize --model dt-1l - < " + path("in")).out;
  EXPECT_EQ(std::count(ids.begin(), ids.end(), '\n'), 3);
  write("ids", "3595 377\n0,3595\n");
  EXPECT_EQ(run("model detokenize --model dt-1l - < " + path("ids")).out, "To be\n<|BOS|>To\n");
  const Json found = json("model tokenize --model dt-1l 'To be'");
  EXPECT_EQ(found.at("tokens"), Json({"To", " be"}));
  EXPECT_EQ(found.at("ids"), Json({3595, 377}));
  EXPECT_EQ(json("model detokenize --model dt-1l 3595 377").at("text"), "To be");
}

// Its template puts BOS before a text, and its EOS is read as one token.
TEST_F(TextTest, TheStoryModelsTokenizer) {
  const std::string text = "\"Well,\" said Mr. Smith, in 1815, 'it's—so.'";
  write("in", text + "\n");
  const std::string ids = run("model tokenize --model dt-story - < " + path("in")).out;
  EXPECT_TRUE(ids.starts_with("0 ")) << ids;
  write("ids", ids);
  EXPECT_EQ(run("model detokenize --model dt-story - < " + path("ids")).out, "<|BOS|>" + text + "\n");
  EXPECT_EQ(run("model tokenize --model dt-story ''").out, "0\n");
  EXPECT_EQ(run("model tokenize --model dt-story '<|EOS|>'").out, "0 1\n");
}

// A small Llama's tokenizer, whose template has <s>; a path instead of a model.
TEST_F(TextTest, WhatGoesBeforeAText) {
  const std::string llama = "--model " + std::string(DEEPTAIL_TEST_DATA) + "/tokenizer/kinds/llama2.json ";
  const std::string ids = run("model tokenize " + llama + "--bos none 'a dog'").out;
  EXPECT_EQ(run("model tokenize " + llama + "'a dog'").out, "1 " + ids);
  EXPECT_EQ(run("model tokenize " + llama + "--bos auto 'a dog'").out, "1 " + ids);
  EXPECT_EQ(run("model tokenize " + llama + "--bos 2 'a dog'").out, "2 " + ids);
  write("ids", ids);
  EXPECT_EQ(run("model detokenize " + llama + "- < " + path("ids")).out, "a dog\n");
  EXPECT_EQ(json("model tokenize " + llama + "' a'").at("text"), " a");
  const Outcome twice = run("model tokenize " + llama + "'<s>a'");
  EXPECT_TRUE(twice.out.starts_with("1 1 ")) << twice.out;
  EXPECT_NE(twice.err.find("the text begins with \"<s>\", and the tokenizer puts another before it"),
            std::string::npos)
      << twice.err;
  EXPECT_EQ(run("model tokenize " + llama + "--bos none '<s>a'").err, "");
  EXPECT_EQ(run("model tokenize --model dt-1l 'To be'").out, "3595 377\n");
  EXPECT_EQ(run("model tokenize --model dt-1l --bos 0 'To be'").out, "0 3595 377\n");
  EXPECT_EQ(run("model logits --model dt-1l --text 'To be' --bos 0").out,
            run("model logits --model dt-1l --tokens 0,3595,377").out);
}

TEST_F(TextTest, ATokenizerConfigSaysWhatGoesBefore) {
  std::filesystem::copy(std::string(DEEPTAIL_SOURCE) + "/models/tokenizer.json", path("tokenizer.json"));
  EXPECT_EQ(run("model tokenize --model " + path("tokenizer.json") + " 'To be'").out, "3595 377\n");
  write("tokenizer_config.json", R"({"add_bos_token":true,"bos_token":{"content":"<|BOS|>"}})");
  EXPECT_EQ(run("model tokenize --model " + path("tokenizer.json") + " 'To be'").out, "0 3595 377\n");
  EXPECT_EQ(run("model tokenize --model " + path("") + " 'To be'").out, "0 3595 377\n");
  write("tokenizer_config.json", R"({"add_bos_token":true,"bos_token":"<s>"})");
  refused("model tokenize --model " + path("tokenizer.json") + " x", "\"<s>\" is no token of the tokenizer");
}

TEST_F(TextTest, MistakesAreTold) {
  for (const char* bad : {"-1", "x", "1.5", "99999999999", "1x"})
    refused(std::string("model tokenize --model dt-1l x --bos ") + bad,
            "--bos: expected auto, none or a token's id");
  refused("model tokenize --model dt-1l x --bos 5000", "there is no token 5000");
  refused("model logits --model dt-1l --text x --bos x", "--bos: expected auto, none or a token's id");

  refused("model detokenize --model dt-1l x", "IDS: expected whole numbers separated by commas or spaces");
  refused("model detokenize --model dt-1l 999999", "999999");
  refused("model tokenize --model dt-l1 x", "did you mean \"dt-1l\"?");
  const std::string bare = std::string(DEEPTAIL_TEST_DATA) + "/model/rand-1l-64";
  refused("model tokenize --model " + bare + " x", "names no tokenizer_file");
  refused("model logits --model " + bare + " --text x", "--text: the model has no tokenizer");
  refused("model logits --model dt-1l", "expected --tokens or --text, found neither");
  refused("model logits --model dt-1l --tokens 1 --text x", "found both");
}

TEST_F(TextTest, SamplesAndLogitsSpeakText) {
  const std::string ids = run("dist sample hex --count 2 --seed 7").out;
  write("ids", ids);
  EXPECT_EQ(run("dist sample hex --count 2 --seed 7 --text").out,
            run("model detokenize --model dt-1l - < " + path("ids")).out);
  const Outcome both = run("dist sample hex --count 1 --seed 7 --text --json --model dt-1l");
  const Json line = parse_json(both.out, "output");
  EXPECT_TRUE(ids.starts_with(std::to_string(line.at("tokens").at(0).get<int>()) + " "));
  EXPECT_TRUE(line.at("text").get<std::string>().starts_with("<|BOS|>"));

  const std::string logits = run("model logits --model dt-1l --tokens 0,3595,377").out;
  EXPECT_EQ(run("model logits --model dt-1l --tokens 0 3595 377").out, logits);
  EXPECT_EQ(run("model logits --model dt-1l --tokens '0, 3595 377'").out, logits);
  EXPECT_EQ(run("model logits --model dt-1l --text '<|BOS|>To be'").out, logits);
}

TEST_F(TextTest, QuotesInTokensAreEscaped) {
  const std::string out = run("estimate --model dt-1l --dist hex --method mc --budget 300 --target '\"'").out;
  EXPECT_TRUE(out.starts_with("Pr[dt-1l on hex says 2 \"\\\"\"]")) << out;
}

// A distribution whose tokens are text is the same as one with their ids, for estimates too.
TEST_F(TextTest, DistributionsMayHoldTokensAsText) {
  const auto file = [&](const std::string& name, const std::string& bos, const std::string& words) {
    return write(name, R"({"format":"deeptail-distribution-1","name":"d","d_vocab":4096,"tokenizer":")" +
                           std::string(DEEPTAIL_SOURCE) + R"(/models/tokenizer.json","tables":{"bos":{)" +
                           bos + R"(,"probabilities":[1]},"w":{)" + words +
                           R"(,"probabilities":[0.5,0.5]}},"positions":["bos","w","w"]})");
  };
  const std::string text = file("text.json", R"("tokens":["<|BOS|>"])", R"("tokens":["To"," be"])");
  const std::string ids = file("ids.json", R"("ids":[0])", R"("ids":[3595,377])");
  EXPECT_EQ(run("dist sample " + text + " --count 20").out, run("dist sample " + ids + " --count 20").out);
  const std::string rest = " --target 267 --method mc --budget 300";
  const Json a = json("estimate --model dt-1l --dist " + text + rest),
             b = json("estimate --model dt-1l --dist " + ids + rest);
  EXPECT_EQ(a.at("p"), b.at("p"));
  EXPECT_NE(a.at("provenance").at("dist_sha256"), b.at("provenance").at("dist_sha256"));
  refused("dist show " + file("bad.json", R"("tokens":["<|BOS|>"])", R"("tokens":["To","To be"])"),
          "\"To be\" is not one token of ");
}

}  // namespace
}  // namespace deeptail
