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

std::string changed(const std::string& key, const std::string& value) {
  Json json = parse_json(kGood, "test");
  json[key] = parse_json(value, "test");
  return json_text(json);
}

TEST(Config, EveryMistakeHasItsSentence) {
  const auto without = [](const std::string& key) {
    Json json = parse_json(kGood, "test");
    json.erase(key);
    return json_text(json);
  };
  EXPECT_EQ(message_of("[]"), "config.json: expected an object, found []");
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
            "config.json: key \"eps\": expected a number, found \"small\"");
  EXPECT_EQ(message_of(changed("d_vocab_out", "7")),
            "config.json: key \"d_vocab_out\": expected d_vocab = 4096, found 7");
  EXPECT_EQ(message_of(changed("attn_scale", "8.0")).substr(0, 66),
            "config.json: key \"attn_scale\": expected sqrt(d_head) = 5.656854249");
  EXPECT_EQ(
      message_of(changed("n_ctx", "-9223372036854775808")),
      "config.json: key \"n_ctx\": expected a whole number from 1 to 1048576, found -9223372036854775808");
}

TEST(Config, WrongTypesAreNotTakenForAbsent) {
  EXPECT_EQ(message_of(changed("d_vocab_out", "\"x\"")),
            "config.json: key \"d_vocab_out\": expected d_vocab = 4096, found \"x\"");
  EXPECT_EQ(message_of(changed("d_vocab_out", "-5")),
            "config.json: key \"d_vocab_out\": expected d_vocab = 4096, found -5");
  EXPECT_EQ(message_of(changed("tokenizer_file", "5")),
            "config.json: key \"tokenizer_file\": expected text, found 5");
  EXPECT_EQ(message_of(changed("tokenizer_file", R"("a\u0000b")")),
            "config.json: key \"tokenizer_file\": expected a path without NUL, found \"a\\u0000b\"");
  EXPECT_EQ(message_of(changed("model_name", "[]")),
            "config.json: key \"model_name\": expected text, found []");
  EXPECT_EQ(message_of(changed("attn_scale", "\"x\"")),
            "config.json: key \"attn_scale\": expected a number, found \"x\"");
}

TEST(Config, EpsByAnyOfItsNames) {
  for (const char* key : {"eps", "ln_eps", "layer_norm_eps", "layer_norm_epsilon"})
    EXPECT_EQ(parse_config(changed(key, "0.25"), "config.json").eps, 0.25f) << key;
  const std::string both = R"("eps":1e-5,"ln_eps":1e-5,)", differing = R"("eps":1e-5,"ln_eps":1e-6,)";
  EXPECT_EQ(message_of(std::string(kGood).insert(1, both)), "");
  EXPECT_EQ(message_of(std::string(kGood).insert(1, differing)),
            "config.json: key \"ln_eps\": 1e-06 here, but 1e-05 in key \"eps\": expected one eps");
  EXPECT_EQ(message_of(changed("eps", "1e-60")),  // 0 in float32
            "config.json: key \"eps\": expected a number from 1.2e-38 to 1, found 1e-60");
}

TEST(Config, KeysThatWouldChangeTheLogitsAreRefusedByName) {
  const std::pair<const char*, const char*> refused[] = {
      {"attn_scores_soft_cap", "50.0"},
      {"output_logits_soft_cap", "30"},
      {"final_logit_softcapping", "30"},
      {"n_key_value_heads", "2"},
      {"num_key_value_heads", "1"},
      {"num_experts", "8"},
      {"scale_attn_by_inverse_layer_idx", "true"},
      {"rotary_dim", "32"},
      {"rotary_base", "500000"},
      {"rope_theta", "10000"},
      {"sliding_window", "4096"},
      {"window_size", "256"},
      {"use_local_attn", "true"},
      {"act_fn", "\"gelu_new\""},
      {"act_fn", "null"},
      {"normalization_type", "\"LNPre\""},
      {"normalization_type", "null"},
      {"attn_only", "true"},
      {"parallel_attn_mlp", "true"},
      {"tie_word_embeddings", "true"},
      {"use_attn_scale", "false"},
      {"final_rms", "true"},
      {"gated_mlp", "true"},
      {"use_qk_norm", "true"},
      {"post_embedding_ln", "true"},
      {"positional_embedding_type", "\"rotary\""},
  };
  for (const auto& [key, value] : refused) {
    const std::string message = message_of(changed(key, value));
    EXPECT_TRUE(
        message.starts_with(fmt::format("config.json: key \"{}\": {} is not supported, only ", key, value)))
        << key << ": " << message;
  }
}

TEST(Config, WhatTransformerLensWritesOfSettingsThatAreOffIsFine) {
  const char* written =
      R"({"n_layers":2,"d_model":128,"n_ctx":64,"d_head":32,"n_heads":4,"d_mlp":512,"act_fn":"gelu","d_vocab":4096,
          "eps":1e-5,"use_attn_result":false,"use_attn_scale":true,"attn_scale":5.656854249492381,
          "use_local_attn":false,"window_size":null,"attn_types":null,"normalization_type":"LN",
          "attention_dir":"causal","attn_only":false,"seed":null,"scale_attn_by_inverse_layer_idx":false,
          "positional_embedding_type":"standard","final_rms":false,"d_vocab_out":4096,"parallel_attn_mlp":false,
          "rotary_dim":null,"gated_mlp":false,"n_key_value_heads":null,"post_embedding_ln":false,
          "rotary_base":10000,"rotary_adjacent_pairs":false,"load_in_4bit":false,"num_experts":null,
          "experts_per_token":null,"tie_word_embeddings":false,"use_normalization_before_and_after":false,
          "attn_scores_soft_cap":-1.0,"output_logits_soft_cap":-1.0,"use_NTK_by_parts_rope":false,
          "original_architecture":"neel","default_prepend_bos":true,"dtype":"torch.float32"})";
  EXPECT_EQ(message_of(written), "");
  EXPECT_EQ(message_of(changed("d_vocab_out", "-1")), "");  // its default: as d_vocab
  EXPECT_EQ(message_of(changed("n_key_value_heads", "4")), "");
  EXPECT_EQ(message_of(changed("attn_scale", "-1.0")), "");
}

TEST(Config, FamiliesWithoutAnEngineAreNamed) {
  EXPECT_EQ(message_of(R"({"model_type":"olmo2","architectures":["X"],"n_layer":2})"),
            "config.json: key \"model_type\": \"olmo2\" has no engine here: expected one of gpt2, gpt_neo, "
            "gpt_neox, "
            "llama, mistral, qwen2, qwen3, or a model in TransformerLens's words");
  EXPECT_EQ(message_of(R"({"architectures":["GPT2LMHeadModel"]})"),
            "config.json: key \"model_type\" is missing");
  EXPECT_EQ(message_of(R"({"model_type":7})"), "config.json: key \"model_type\": expected text, found 7");
}

}  // namespace
}  // namespace deeptail
