#include "unit/model/fixture.h"

namespace deeptail {
namespace {

const char* const kGood =
    R"({"n_layers":2,"d_model":128,"n_heads":4,"n_ctx":64,"d_vocab":4096,"act_fn":"gelu"})";

std::string message_of(const std::string& json) {
  try {
    parse_config(json, "config.json");
  } catch (const InputError& e) {
    return e.what();
  }
  return "";
}

TEST(Config, FillsTransformerLensDefaults) {
  const ModelConfig c = parse_config(kGood, "config.json");
  EXPECT_EQ(c.d_head, 32u);
  EXPECT_EQ(c.d_mlp, 512u);
  EXPECT_EQ(c.eps, 1e-5f);
  EXPECT_EQ(c.d_attn(), 128u);
}

TEST(Config, EveryMistakeHasItsSentence) {
  const auto changed = [](const std::string& key, const std::string& value) {
    Json json = parse_json(kGood, "test");
    json[key] = parse_json(value, "test");
    return json_text(json);
  };
  const auto without = [](const std::string& key) {
    Json json = parse_json(kGood, "test");
    json.erase(key);
    return json_text(json);
  };
  EXPECT_EQ(message_of("[]"), "config.json: expected a JSON object");
  EXPECT_EQ(message_of(without("d_model")), "config.json: key \"d_model\" is missing");
  EXPECT_EQ(message_of(changed("n_layers", "0")),
            "config.json: key \"n_layers\": expected a whole number from 1 to 1024, found 0");
  EXPECT_EQ(message_of(changed("d_model", "1.5")),
            "config.json: key \"d_model\": expected a whole number from 1 to 65536, found 1.5");
  EXPECT_EQ(message_of(changed("act_fn", "\"solu_ln\"")),
            "config.json: key \"act_fn\": \"solu_ln\" is not supported, only \"gelu\"");
  EXPECT_EQ(message_of(changed("normalization_type", "\"RMS\"")),
            "config.json: key \"normalization_type\": \"RMS\" is not supported, only \"LN\"");
  EXPECT_EQ(message_of(changed("n_heads", "200")), "config.json: d_head is 0: more heads than d_model");
  EXPECT_EQ(message_of(changed("eps", "\"small\"")),
            "config.json: key \"eps\": expected a number between 0 and 1");
  EXPECT_EQ(message_of(changed("d_vocab_out", "7")), "config.json: d_vocab_out must equal d_vocab (4096)");
  EXPECT_NE(message_of(changed("attn_scale", "8.0")), "");
  EXPECT_EQ(
      message_of(changed("n_ctx", "-9223372036854775808")),
      "config.json: key \"n_ctx\": expected a whole number from 1 to 1048576, found -9223372036854775808");
}

}  // namespace
}  // namespace deeptail
