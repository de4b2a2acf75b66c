// Missing, extra and misshapen tensors: each refused by name.
#include "unit/model/fixture.h"

namespace deeptail {
namespace {

class WeightsTest : public ::testing::Test {
 protected:
  const std::string folder_ = std::string(DEEPTAIL_TEST_DATA) + "/model/rand-1l-64";
  const ModelConfig config_ = Transformer::load(folder_).config();
  TensorMap tensors_ = read_tensors(folder_);

  std::string message() const {
    try {
      Transformer::from_tensors(config_, tensors_, "model");
    } catch (const InputError& e) {
      return e.what();
    }
    return "";
  }
};

TEST_F(WeightsTest, MissingTensor) {
  tensors_.erase("blocks.0.mlp.b_in");
  EXPECT_EQ(message(), "model: tensor blocks.0.mlp.b_in is missing");
}

TEST_F(WeightsTest, UnembedBiasMayBeAbsent) {
  tensors_.erase("unembed.b_U");
  EXPECT_EQ(message(), "");
}

TEST_F(WeightsTest, ExtraTensor) {
  tensors_["blocks.1.ln1.w"] = tensors_.at("blocks.0.ln1.w");
  EXPECT_EQ(message(), "model: tensor blocks.1.ln1.w is not part of this architecture");
}

TEST_F(WeightsTest, BuffersAreIgnored) {
  tensors_["blocks.0.attn.mask"] = tensors_["blocks.0.attn.IGNORE"] = tensors_.at("blocks.0.ln1.w");
  EXPECT_EQ(message(), "");
}

TEST_F(WeightsTest, WrongShape) {
  tensors_.at("blocks.0.attn.W_O").shape = {2, 64, 32};
  EXPECT_EQ(
      message(),
      "model: tensor blocks.0.attn.W_O: expected shape [2, 32, 64] by the config, found [2, 64, 32]");
}

TEST_F(WeightsTest, NotFinite) {
  Tensor& tensor = tensors_.at("ln_final.b");
  std::vector<float> values = to_float(tensor);
  values[3] = NAN;
  tensor.dtype = DType::kF32;
  tensor.bytes = std::as_bytes(std::span(values));
  EXPECT_NE(message().find("ln_final.b"), std::string::npos);
}

TEST(FindModel, NamesThePlaces) {
  EXPECT_EQ(find_model(std::string(DEEPTAIL_TEST_DATA) + "/model/rand-1l-64"),
            std::string(DEEPTAIL_TEST_DATA) + "/model/rand-1l-64");
  EXPECT_THROW(find_model("no-such-model"), InputError);
}

}  // namespace
}  // namespace deeptail
