#include "unit/model/fixture.h"
#include "unit/tensors/build_files.h"

namespace deeptail {
namespace {

namespace fs = std::filesystem;

class Identity : public ::testing::Test {
 protected:
  Identity() {
    fs::copy(std::string(DEEPTAIL_TEST_DATA) + "/model/rand-1l-64", folder_.path("m"));
    config_ = parse_json(testing::read_whole(folder_.path("m/config.json")), "config.json");
  }
  std::string after(const Json& config) const {
    folder_.write("m/config.json", json_text(config));
    return model_sha256(folder_.path("m"));
  }

  testing::TempFolder folder_;
  Json config_;
};

TEST_F(Identity, IsOfTheValuesThatChangeTheLogits) {
  const std::string before = model_sha256(folder_.path("m"));
  Json renamed = config_;
  renamed["model_name"] = "another";
  renamed["seed"] = 7;
  renamed.erase("normalization_type");
  EXPECT_EQ(after(renamed), before);  // and written in one line
  Json eps = config_;
  eps["eps"] = 0.5;
  EXPECT_NE(after(eps), before);
  eps.erase("eps");
  eps["ln_eps"] = config_.at("eps");
  EXPECT_EQ(after(eps), before);
  for (const char* key : {"n_layers", "d_model", "n_heads", "d_head", "d_mlp", "n_ctx", "d_vocab"}) {
    Json size = config_;
    size[key] = size.at(key).get<int>() + 1;
    EXPECT_NE(after(size), before) << key;
  }
}

TEST_F(Identity, IsOfTheWeights) {
  const std::string before = model_sha256(folder_.path("m"));
  std::string weights = testing::read_whole(folder_.path("m/model.safetensors"));
  weights.back() = static_cast<char>(weights.back() ^ 1);
  folder_.write("m/model.safetensors", weights);
  EXPECT_NE(model_sha256(folder_.path("m")), before);
}

TEST(FamilyIdentity, IsOfWhatTheConfigSays) {
  const auto of = [](const std::string& name, const std::function<void(ModelConfig&)>& change) {
    ModelConfig config = read_config(fixture_folder(name));
    change(config);
    return model_sha256(config, read_tensors(fixture_folder(name)));
  };
  const auto differs = [&](const std::string& name, const std::function<void(Architecture&)>& change) {
    const std::string before = of(name, [](ModelConfig&) {});
    return of(name, [&](ModelConfig& c) { change(c.arch); }) != before;
  };
  using A = Architecture;
  EXPECT_TRUE(differs("llama-a", [](A& a) { a.frequencies[1] *= 1.0 + 1e-15; }));
  EXPECT_TRUE(differs("llama-a", [](A& a) { a.frequencies.pop_back(); }));
  EXPECT_TRUE(differs("llama-a", [](A& a) { a.tied_head = true; }));
  EXPECT_TRUE(differs("llama-a", [](A& a) { a.kv_groups = 1; }));
  EXPECT_TRUE(differs("llama-a", [](A& a) { a.norm = A::Norm::kLayer; }));
  EXPECT_TRUE(differs("qwen3-a", [](A& a) { a.qk_norm = false; }));
  EXPECT_TRUE(differs("gpt2-b", [](A& a) { a.attention_scale = A::AttentionScale::kByHead; }));
  EXPECT_TRUE(differs("gpt_neo-a", [](A& a) { a.attention_scale = A::AttentionScale::kByHead; }));
  EXPECT_TRUE(differs("gpt_neox-a", [](A& a) { a.residual = A::Residual::kSequential; }));
  EXPECT_TRUE(differs("gpt_neox-a", [](A& a) { a.mlp = A::Mlp::kGeluTanh; }));
  EXPECT_EQ(of("llama-a", [](ModelConfig& c) { c.model_name = "another"; }),
            of("llama-a", [](ModelConfig&) {}));
}

// Files of results refer to models by it, so it must never change.
TEST(ShippedModels, KeepTheirIdentity) {
  EXPECT_EQ(model_sha256(std::string(DEEPTAIL_SOURCE) + "/models/dt-1l"),
            "9fdfd51740ea330ca8c4902ee724e6a7df1d34a4b668b3f6622a1f0b00bd5fd1");
}

}  // namespace
}  // namespace deeptail
