// config.json of HuggingFace models: what is read, and what is refused by name.
#include <gtest/gtest.h>

#include <numbers>

#include "core/json.h"
#include "deeptail/model.h"

namespace deeptail {
namespace {

const char* kLlama =
    R"({"model_type":"llama","vocab_size":61,"hidden_size":24,"intermediate_size":36,"num_hidden_layers":2,
        "num_attention_heads":4,"max_position_embeddings":20})";
const char* kGpt2 =
    R"({"model_type":"gpt2","vocab_size":61,"n_embd":24,"n_layer":2,"n_head":3,"n_positions":20})";
const char* kNeo = R"({"model_type":"gpt_neo","vocab_size":61,"hidden_size":24,"num_layers":2,"num_heads":3,
                       "max_position_embeddings":2048})";
const char* kNeox = R"({"model_type":"gpt_neox","vocab_size":61,"hidden_size":32,"num_hidden_layers":2,
                        "num_attention_heads":2,"intermediate_size":40,"max_position_embeddings":20})";

ModelConfig config_of(const Json& json) { return parse_config(json_text(json), "config.json"); }
ModelConfig config_of(const char* base, const char* key, const Json& value) {
  Json json = parse_json(base, "base");
  json[key] = value;
  return config_of(json);
}
std::string refused(const Json& json) {
  try {
    config_of(json);
    return "";
  } catch (const InputError& error) {
    return error.what();
  }
}
std::string refused(const char* base, const char* key, const Json& value) {
  Json json = parse_json(base, "base");
  json[key] = value;
  return refused(json);
}
Json renamed(const char* base, const char* family) {
  Json json = parse_json(base, "base");
  json["model_type"] = family;
  return json;
}

TEST(HfConfig, AbsentKeysAreTheClassesDefaults) {
  const ModelConfig llama = parse_config(kLlama, "c");
  EXPECT_EQ(llama.eps, 1e-6f);
  EXPECT_EQ(llama.arch.kv_groups, 1u);
  EXPECT_EQ(llama.d_head, 6u);
  EXPECT_EQ(llama.arch.frequencies.size(), 3u);
  EXPECT_NEAR(llama.arch.frequencies[1], std::pow(10000.0, -1.0 / 3.0), 1e-15);
  EXPECT_FALSE(llama.arch.tied_head);
  EXPECT_FALSE(llama.qkv_bias);
  const ModelConfig gpt2 = parse_config(kGpt2, "c");
  EXPECT_EQ(gpt2.d_mlp, 96u);
  EXPECT_TRUE(gpt2.arch.tied_head);
  EXPECT_EQ(gpt2.arch.mlp, Architecture::Mlp::kGeluTanh);
  const ModelConfig neo = parse_config(kNeo, "c");
  EXPECT_EQ(neo.n_ctx, 256u);  // local layers, unless it says otherwise
  EXPECT_EQ(neo.arch.attention_scale, Architecture::AttentionScale::kOne);
  const ModelConfig neox = parse_config(kNeox, "c");
  EXPECT_EQ(neox.arch.rotary_dims(), 4u);  // a quarter of 16
  EXPECT_EQ(neox.arch.residual, Architecture::Residual::kParallel);
  Json mistral = renamed(kLlama, "mistral");
  mistral["num_attention_heads"] = 8, mistral["hidden_size"] = 32;
  mistral["max_position_embeddings"] = 9000;
  EXPECT_EQ(config_of(mistral).n_ctx, 4096u);
  mistral["sliding_window"] = nullptr;
  EXPECT_EQ(config_of(mistral).n_ctx, 9000u);
  Json qwen3 = renamed(kLlama, "qwen3");
  qwen3["num_key_value_heads"] = 2;
  EXPECT_EQ(config_of(qwen3).d_head, 128u);
  EXPECT_TRUE(config_of(qwen3).arch.qk_norm);
}

TEST(HfConfig, WindowsLimitTheContextWhereTheyApply) {
  Json qwen = renamed(kLlama, "qwen2");
  qwen["num_key_value_heads"] = 4;
  qwen["sliding_window"] = 7;
  EXPECT_EQ(config_of(qwen).n_ctx, 20u);  // named, but off
  qwen["use_sliding_window"] = true;
  EXPECT_EQ(config_of(qwen).n_ctx, 20u);  // from layer 28 on, of 2
  qwen["max_window_layers"] = 1;
  EXPECT_EQ(config_of(qwen).n_ctx, 7u);
  qwen["layer_types"] = {"full_attention", "full_attention"};
  EXPECT_EQ(config_of(qwen).n_ctx, 20u);
  qwen["layer_types"] = {"full_attention", "chunked_attention"};
  EXPECT_EQ(refused(qwen),
            "config.json: key \"layer_types[1]\": expected full_attention or sliding_attention, found "
            "\"chunked_attention\"");
}

TEST(HfConfig, RotaryPositionsOfBothReleases) {
  const ModelConfig now =
      config_of(kLlama, "rope_parameters", {{"rope_theta", 500.0}, {"rope_type", "default"}});
  EXPECT_EQ(now.arch.frequencies, config_of(kLlama, "rope_theta", 500.0).arch.frequencies);
  Json linear = parse_json(kLlama, "base");
  linear["rope_scaling"] = {{"type", "linear"}, {"factor", 4.0}};
  EXPECT_EQ(config_of(linear).arch.frequencies[0], 0.25);
  // Long wavelengths are stretched, short ones stay: 2 pi turns of the first pair in 2 pi * 40 positions.
  const ModelConfig llama3 = config_of(kLlama, "rope_scaling",
                                       {{"rope_type", "llama3"},
                                        {"factor", 8.0},
                                        {"low_freq_factor", 1.0},
                                        {"high_freq_factor", 4.0},
                                        {"original_max_position_embeddings", 2.0 * std::numbers::pi * 40.0}});
  EXPECT_EQ(llama3.arch.frequencies[0], 1.0);
  EXPECT_NEAR(llama3.arch.frequencies[2], std::pow(10000.0, -2.0 / 3.0) / 8.0, 1e-15);
  const double turns = 40.0 * std::pow(10000.0, -1.0 / 3.0), kept = (turns - 1.0) / 3.0;
  EXPECT_NEAR(llama3.arch.frequencies[1], std::pow(10000.0, -1.0 / 3.0) * ((1.0 - kept) / 8.0 + kept), 1e-15);
  for (const char* type : {"yarn", "longrope", "dynamic"})
    EXPECT_EQ(
        refused(kLlama, "rope_scaling", {{"rope_type", type}, {"factor", 2.0}}),
        fmt::format(
            "config.json: key \"rope_scaling.rope_type\": \"{}\" is not supported, only default, linear "
            "and llama3",
            type));
  EXPECT_EQ(refused(kLlama, "rope_parameters", {{"rope_theta", 500.0}, {"beta_fast", 32}}),
            "config.json: key \"rope_parameters.beta_fast\": 32 is not supported");
  EXPECT_EQ(refused(kLlama, "rope_theta", -1.0),
            "config.json: key \"rope_theta\": expected a positive number, found -1.0");
  EXPECT_NE(refused(kLlama, "partial_rotary_factor", 0.5), "");  // llama turns whole heads
  EXPECT_NE(refused(kNeox, "rotary_pct", 0.2), "");              // 3 values have no pairs
}

TEST(HfConfig, WhatIsNotUnderstoodIsRefusedByName) {
  const std::pair<const char*, Json> changes[] = {{"quantization_config", {{"quant_method", "gptq"}}},
                                                  {"num_local_experts", 8},
                                                  {"logit_scale", 0.5},
                                                  {"query_pre_attn_scalar", 128},
                                                  {"residual_multiplier", 0.22},
                                                  {"new_switch", true},
                                                  {"attn_logit_softcapping", 50.0},
                                                  {"use_bidirectional_attention", true}};
  for (const auto& [key, value] : changes) {
    const std::string message = refused(kLlama, key, value);
    EXPECT_EQ(message.rfind(fmt::format("config.json: key \"{}\": ", key), 0), 0u) << message;
  }
  EXPECT_EQ(refused(kLlama, "hidden_act", "gelu"),
            "config.json: key \"hidden_act\": \"gelu\" is not supported, only \"silu\"");
  EXPECT_EQ(refused(kGpt2, "activation_function", "relu"),
            "config.json: key \"activation_function\": expected gelu, gelu_new, gelu_pytorch_tanh or "
            "gelu_fast, found "
            "\"relu\"");
  EXPECT_EQ(refused(kLlama, "num_key_value_heads", 3),
            "config.json: 4 query heads on 3 heads of keys and values: expected a multiple");
  EXPECT_EQ(refused(kGpt2, "n_head", 5), "config.json: 5 heads of 24 values: expected a divisor");
  EXPECT_NE(refused(kGpt2, "add_cross_attention", true), "");
  EXPECT_NE(refused(kNeo, "attention_types", {{{"global", "sparse"}, 1}}), "");
  // Off, or about something else.
  for (const auto& [key, value] : std::vector<std::pair<const char*, Json>>{{"num_local_experts", 0},
                                                                            {"use_mrope", false},
                                                                            {"torch_dtype", "bfloat16"},
                                                                            {"bos_token_id", 1},
                                                                            {"_name_or_path", "x"},
                                                                            {"rope_interleaved", false},
                                                                            {"unsloth_version", "2025.1"}})
    EXPECT_EQ(refused(kLlama, key, value), "") << key;
}

}  // namespace
}  // namespace deeptail
