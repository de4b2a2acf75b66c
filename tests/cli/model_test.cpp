// deeptail model, run as a user runs it.
#include "cli/run_binary.h"

namespace deeptail {
namespace {

namespace fs = std::filesystem;

class ModelCommand : public CliTest {
 protected:
  const std::string fixture_ = std::string(DEEPTAIL_TEST_DATA) + "/model/rand-1l-64";
  // A copy of the fixture that the test may spoil.
  std::string copy() const {
    fs::copy(fixture_, folder_ / "model");
    return path("model");
  }
};

TEST_F(ModelCommand, LogitsKeepTheContract) {
  const auto fixture = parse_json(read(fixture_ + "/fixture.json"), "fixture").at("sequences").at(1);
  std::string ids;
  for (const auto& id : fixture.at("tokens")) ids += (ids.empty() ? "" : ",") + json_text(id);
  const auto found = json("model logits --model '" + fixture_ + "' --tokens " + ids);
  EXPECT_EQ(found.at("argmax"), fixture.at("argmax"));
  ASSERT_EQ(found.at("logits").size(), fixture.at("logits").size());
  for (std::size_t i = 0; i < found.at("logits").size(); ++i)
    EXPECT_NEAR(found["logits"][i].get<double>(), fixture["logits"][i].get<double>(), 2e-4);
}

TEST_F(ModelCommand, VerifyPassesOnTheZoo) {
  for (const char* name : {"dt-1l", "dt-2l", "dt-4l", "dt-story"}) {
    const Outcome outcome = run(std::string("model verify ") + name);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_NE(outcome.out.find("max error"), std::string::npos);
  }
  EXPECT_EQ(run("model list").code, 0);
  EXPECT_NE(run("model list").out.find("dt-4l"), std::string::npos);
  EXPECT_NE(run("model inspect dt-1l").out.find("blocks.0.attn.W_Q"), std::string::npos);
}

TEST_F(ModelCommand, ListInspectAndVerifyHaveJson) {
  const Json models = json("model list");
  EXPECT_EQ(models.at(0).at("name"), "dt-1l");
  EXPECT_EQ(models.at(0).at("n_layers"), 1);
  const Json inspected = json("model inspect dt-1l");
  EXPECT_EQ(inspected.at("d_vocab"), 4096);
  EXPECT_EQ(inspected.at("tensors").at(0).at("name"), "blocks.0.attn.W_K");
  const Json verified = json("model verify dt-1l");
  EXPECT_EQ(verified.at("agrees"), true);
  EXPECT_LT(verified.at("max_error").get<double>(), 2e-4);
}

TEST_F(ModelCommand, VerifyNoticesOtherWeights) {
  fs::copy(std::string(DEEPTAIL_SOURCE) + "/models/dt-1l", folder_ / "swapped", fs::copy_options::recursive);
  fs::copy_file(std::string(DEEPTAIL_SOURCE) + "/models/dt-2l/reference.json",
                folder_ / "swapped" / "reference.json", fs::copy_options::overwrite_existing);
  const Outcome outcome = run("model verify '" + path("swapped") + "'");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.err.find("do not give the logits of reference.json"), std::string::npos);
}

TEST_F(ModelCommand, BadFlagsAndFiles) {
  const std::string model = "model logits --model '" + fixture_ + "' --tokens ";
  refused(model + "1,two", "--tokens: expected whole numbers separated by commas or spaces, found \"two\"");
  refused(model + "1,,2", "found \"\"");
  refused(model + "97", "token id 97 at position 0: expected 0 to d_vocab - 1 = 96");
  refused(model + "-1", "token id -1");
  refused(model + "99999999999", "--tokens");
  refused("model logits --model nowhere --tokens 1", "model nowhere: no such folder");
  refused("model logits --tokens 1", "--model is required");
  refused("model", "model: expected one of list, inspect");
  refused("nonsense", "unknown command \"nonsense\"; expected one of ");

  const std::string folder = copy();
  const std::string weights = read(folder + "/model.safetensors");
  write("model/model.safetensors", weights.substr(0, weights.size() / 2));
  refused("model verify '" + folder + "'", "model.safetensors");
  write("model/model.safetensors", "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n");
  refused("model verify '" + folder + "'", "git-LFS");
  write("model/config.json", "{");
  refused("model inspect '" + folder + "'", "config.json: not valid JSON at byte 2 of 1");
  fs::remove(folder_ / "model" / "config.json");
  refused("model inspect '" + folder + "'", "config.json: cannot open");
}

TEST_F(ModelCommand, ABrokenModelDoesNotHideTheOthers) {
  std::filesystem::create_directories(path("models/broken"));
  write("models/broken/config.json", "{");
  ::setenv("DEEPTAIL_HOME", folder_.c_str(), 1);
  const Outcome listed = run("model list");
  ::unsetenv("DEEPTAIL_HOME");
  EXPECT_EQ(listed.code, 0);
  EXPECT_NE(listed.out.find("dt-1l"), std::string::npos);
  EXPECT_NE(listed.err.find("models/broken/config.json: not valid JSON"), std::string::npos) << listed.err;
}

TEST_F(ModelCommand, ControlCharactersInANameArePrintedEscaped) {
  std::filesystem::copy(fixture_, path("model"), std::filesystem::copy_options::recursive);
  Json config = parse_json(read(path("model/config.json")), "config");
  config["model_name"] = "a\x1b[31mb";
  write("model/config.json", json_text(config));
  const Outcome inspected = run("model inspect '" + path("model") + "'");
  EXPECT_NE(inspected.out.find("a\\x1b[31mb: pre-LN"), std::string::npos) << inspected.out;
  const Outcome refusal = run("truth --samples 8 --out x --dist caps --model '" + path("model") + "'");
  EXPECT_EQ(refusal.code, 2);
  EXPECT_NE(refusal.err.find("a\\x1b[31mb"), std::string::npos) << refusal.err;
  EXPECT_EQ(refusal.err.find('\x1b'), std::string::npos);
}

}  // namespace
}  // namespace deeptail
