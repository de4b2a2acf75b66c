// A Llama-form model of any size with random weights, in memory.
#pragma once

#include <random>

#include "deeptail/load.h"
#include "model/families/family.h"

namespace deeptail {

// Weights are N(0, scale^2), norms 1 + N(0, scale^2): logits of a useful spread, and residuals that grow.
class RandomLlama {
 public:
  explicit RandomLlama(const std::string& config_json, float scale = 0.04f)
      : config_(parse_config(config_json, "config.json")), scale_(scale) {
    const auto d = config_.d_model, kv = config_.d_kv(), attn = config_.d_attn(), mlp = config_.d_mlp;
    add("model.embed_tokens.weight", {config_.d_vocab, d});
    for (std::size_t i = 0; i < config_.n_layers; ++i) {
      const std::string at = fmt::format("model.layers.{}.", i);
      add(at + "self_attn.q_proj.weight", {attn, d}), add(at + "self_attn.k_proj.weight", {kv, d});
      add(at + "self_attn.v_proj.weight", {kv, d}), add(at + "self_attn.o_proj.weight", {d, attn});
      add(at + "mlp.gate_proj.weight", {mlp, d}), add(at + "mlp.up_proj.weight", {mlp, d});
      add(at + "mlp.down_proj.weight", {d, mlp});
      add(at + "input_layernorm.weight", {d}), add(at + "post_attention_layernorm.weight", {d});
    }
    add("model.norm.weight", {d});
  }

  LoadedModel load(const std::string& name) const {
    return {.transformer = Transformer::from_tensors(config_, tensors_, name),
            .tokenizer = {},
            .name = name,
            .folder = "",
            .sha256 = ""};
  }

 private:
  void add(const std::string& name, std::vector<std::size_t> shape) {
    std::size_t size = 1;
    for (const std::size_t n : shape) size *= n;
    std::vector<float>& v = values_.emplace_back(size, shape.size() == 1 ? 1.0f : 0.0f);
    std::normal_distribution<float> normal(0.0f, scale_);
    for (float& x : v) x += normal(random_);
    tensors_[name] = {.name = name,
                      .dtype = DType::kF32,
                      .shape = {shape.begin(), shape.end()},
                      .bytes = std::as_bytes(std::span(v)),
                      .file = nullptr};
  }

  ModelConfig config_;
  float scale_;
  std::mt19937_64 random_{1};
  std::list<std::vector<float>> values_;
  TensorMap tensors_;
};

inline constexpr const char* kSmolLm2Shape =
    R"({"model_type": "llama", "vocab_size": 49152, "hidden_size": 576, "intermediate_size": 1536,
        "num_hidden_layers": 30, "num_attention_heads": 9, "num_key_value_heads": 3, "max_position_embeddings": 2048,
        "rms_norm_eps": 1e-5, "rope_theta": 100000.0, "tie_word_embeddings": true})";

}  // namespace deeptail
