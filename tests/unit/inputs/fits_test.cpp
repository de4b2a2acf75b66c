#include <gtest/gtest.h>

#include "core/sha256.h"
#include "zoo.h"

namespace deeptail {
namespace {

std::string refusal(const Distribution& dist, const ModelConfig& config, std::string_view tokenizer) {
  try {
    check_fits(dist, config, tokenizer);
  } catch (const InputError& e) {
    return e.what();
  }
  return "";
}

TEST(Fits, LengthVocabularyAndTokenizer) {
  const Distribution dist = zoo("hex");
  const std::string other = sha256_hex("another tokenizer.json");
  ModelConfig config{.model_name = "m", .n_ctx = 33, .d_vocab = 4096, .tokenizer_file = ""};
  EXPECT_EQ(refusal(dist, config, dist.tokenizer_sha256), "");
  EXPECT_EQ(refusal(dist, config, ""), "");  // a model without tokenizer
  EXPECT_EQ(refusal(dist, config, other),
            fmt::format(
                "distribution hex: its ids belong to another tokenizer (SHA-256 a5108c9866a9...) than those "
                "of model m ({:.12}...)",
                other));
  config.n_ctx = 32;
  EXPECT_EQ(refusal(dist, config, ""),
            "distribution hex: 33 positions, but model m reads at most n_ctx = 32");
  config.n_ctx = 64;
  config.d_vocab = 4079;
  EXPECT_EQ(refusal(dist, config, ""),
            "distribution hex: made for a vocabulary of 4096 tokens, but model m has 4079");
}

}  // namespace
}  // namespace deeptail
