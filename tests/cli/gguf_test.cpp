// A GGUF file wherever a model is taken.
#include "cli/run_binary.h"

namespace deeptail {
namespace {

class GgufCommand : public CliTest {
 protected:
  // One layer, four tokens: <unk>, a, b, ab.
  const std::string file_ = std::string(DEEPTAIL_SOURCE) + "/tests/fuzz/corpus/gguf/llama.gguf";
};

TEST_F(GgufCommand, IsInspectedAndRun) {
  const auto found = json("model inspect '" + file_ + "'");
  EXPECT_EQ(found.at("model"), "llama");
  EXPECT_EQ(found.at("family"), "gguf-llama");
  EXPECT_EQ(found.at("d_vocab"), 4);
  EXPECT_GT(found.at("passes_per_second"), 0.0);
  EXPECT_NE(found.at("cuda"), "");
  EXPECT_EQ(json("model logits --tokens 1,3 --model '" + file_ + "'").at("logits").size(), 4u);
  EXPECT_EQ(run("model verify '" + file_ + "'").code, 0);
}

TEST_F(GgufCommand, IsListedAndFoundByItsName) {
  std::filesystem::create_directories(path("models"));
  std::filesystem::copy(file_, path("models/small.gguf"));
  write("models/other.gguf", "no such file");
  ::setenv("DEEPTAIL_HOME", folder_.c_str(), 1);
  const auto rows = json("model list");
  const auto is_it = [](const Json& row) { return row.at("name") == "small.gguf"; };
  EXPECT_EQ(std::count_if(rows.begin(), rows.end(), is_it), 1) << rows;
  EXPECT_EQ(json("model inspect small.gguf").at("d_vocab"), 4);
  EXPECT_NE(run("model list").out.find("small.gguf"), std::string::npos);
  ::unsetenv("DEEPTAIL_HOME");
}

TEST_F(GgufCommand, IsVerifiedByAReferenceOfItsOwn) {
  std::filesystem::copy(file_, path("m.gguf"));
  const std::string model = "model verify '" + path("m.gguf") + "' ", reference = "'" + path("m.reference.json") + "'";
  EXPECT_FALSE(json(model).at("reference"));
  EXPECT_EQ(json(model + "--make " + reference).at("reference"), path("m.reference.json"));
  EXPECT_EQ(json(model).at("max_error"), 0.0);
  EXPECT_EQ(json(model + "--reference " + reference).at("agrees"), true);
  const Outcome other = run("model verify dt-1l --reference " + reference);
  EXPECT_EQ(other.code, 2);
  EXPECT_NE(other.err, "");
  refused(model + "--make '" + path("m.gguf") + "'", "this command reads it");
  refused(model + "--reference '" + path("none.json") + "'", "there is no such file");
}

TEST_F(GgufCommand, HasItsTokenizer) {
  EXPECT_EQ(run("model tokenize --model '" + file_ + "' ab").out,
            "1 0 3\n");  // the usual token before a text, <unk> for the space
  EXPECT_EQ(run("model detokenize --model '" + file_ + "' 1 2").out, "ab\n");
}

TEST_F(GgufCommand, IsEstimated) {
  write("d.json", R"({"format":"deeptail-distribution-1","name":"d","d_vocab":4,"positions":["t","t","t"],)"
                  R"("tables":{"t":{"ids":[0,1,2,3],"probabilities":[0.25,0.25,0.25,0.25]}}})");
  const std::string question =
      "--target 1 --budget 4096 --quiet --model '" + file_ + "' --dist '" + path("d.json") + "'";
  const auto sampled = json("estimate --method mc " + question);
  const auto split = json("estimate --method tokensplit " + question);
  EXPECT_NEAR(sampled.at("p").get<double>(), split.at("p").get<double>(), 0.1);
}

TEST_F(GgufCommand, IsNotWrittenOver) {
  std::filesystem::copy(file_, path("m.gguf"));
  EXPECT_NE(run("truth --samples 16 --quiet --model '" + path("m.gguf") + "' --dist hex --out '" +
                path("m.gguf") + "'")
                .code,
            0);
  EXPECT_EQ(read(path("m.gguf")), read(file_));
}

}  // namespace
}  // namespace deeptail
