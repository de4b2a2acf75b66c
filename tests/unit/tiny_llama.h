// Models with random weights.
#pragma once

#include <map>
#include <random>
#include <string>
#include <vector>

#include "deeptail/model.h"

namespace deeptail {

// Normal numbers as tensors; a model that is made from them must not outlive it.
class RandomTensors {
 public:
  explicit RandomTensors(unsigned seed) : engine_(seed) {}
  void put(const std::string& name, std::vector<std::int64_t> shape, double scale, double mean = 0.0) {
    std::size_t n = 1;
    for (const std::int64_t d : shape) n *= static_cast<std::size_t>(d);
    std::vector<float>& kept = storage_[name];
    std::normal_distribution<double> normal(0.0, 1.0);
    for (std::size_t i = 0; i < n; ++i) kept.push_back(static_cast<float>(normal(engine_) * scale + mean));
    tensors_[name] = {.name = name,
                      .dtype = DType::kF32,
                      .shape = std::move(shape),
                      .bytes = std::as_bytes(std::span(kept)),
                      .file = {}};
  }
  const TensorMap& map() const { return tensors_; }

 private:
  std::mt19937 engine_;
  std::map<std::string, std::vector<float>> storage_;
  TensorMap tensors_;
};

// One layer of Llama's form with two heads, and the standard deviations of its weights.
struct TinyLlama {
  std::int64_t vocab = 8, width = 8, hidden = 16, kv_heads = 1, context = 16;
  double attention = 0.6, attention_out = 0.6, mlp = 0.5, head = 0.5;

  Transformer made(RandomTensors& tensors) const {
    const std::string layer = "model.layers.0.";
    const std::int64_t kv = width / 2 * kv_heads;
    tensors.put("model.embed_tokens.weight", {vocab, width}, 1.0);
    tensors.put(layer + "input_layernorm.weight", {width}, 0.1, 1.0);
    tensors.put(layer + "post_attention_layernorm.weight", {width}, 0.1, 1.0);
    tensors.put(layer + "self_attn.q_proj.weight", {width, width}, attention);
    tensors.put(layer + "self_attn.k_proj.weight", {kv, width}, attention);
    tensors.put(layer + "self_attn.v_proj.weight", {kv, width}, attention);
    tensors.put(layer + "self_attn.o_proj.weight", {width, width}, attention_out);
    tensors.put(layer + "mlp.gate_proj.weight", {hidden, width}, mlp);
    tensors.put(layer + "mlp.up_proj.weight", {hidden, width}, mlp);
    tensors.put(layer + "mlp.down_proj.weight", {width, hidden}, mlp);
    tensors.put("model.norm.weight", {width}, 0.1, 1.0);
    tensors.put("lm_head.weight", {vocab, width}, head);
    return Transformer::from_tensors(
        parse_config(fmt::format(R"({{"model_type": "llama", "hidden_size": {}, "intermediate_size": {},
            "num_hidden_layers": 1, "num_attention_heads": 2, "num_key_value_heads": {}, "vocab_size": {},
            "max_position_embeddings": {}, "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "hidden_act": "silu",
            "tie_word_embeddings": false, "attention_bias": false, "mlp_bias": false}})",
                                 width, hidden, kv_heads, vocab, context),
                     "tiny llama"),
        tensors.map(), "tiny llama");
  }
};

}  // namespace deeptail
