#include "one_layer_weights.h"

#include <utility>

namespace deeptail::modes {

OneLayerWeights::OneLayerWeights(ModelConfig config) : config_(std::move(config)) {
  const auto size = [](std::size_t n) { return static_cast<std::int64_t>(n); };
  const std::int64_t d = size(config_.d_model), vocab = size(config_.d_vocab), heads = size(config_.n_heads),
                     head = size(config_.d_head), mlp = size(config_.d_mlp);
  shapes_ = {{"embed.W_E", {vocab, d}},
             {"pos_embed.W_pos", {size(config_.n_ctx), d}},
             {"blocks.0.attn.W_Q", {heads, d, head}},
             {"blocks.0.attn.W_K", {heads, d, head}},
             {"blocks.0.attn.W_V", {heads, d, head}},
             {"blocks.0.attn.b_Q", {heads, head}},
             {"blocks.0.attn.b_K", {heads, head}},
             {"blocks.0.attn.b_V", {heads, head}},
             {"blocks.0.attn.W_O", {heads, head, d}},
             {"blocks.0.attn.b_O", {d}},
             {"blocks.0.mlp.W_in", {d, mlp}},
             {"blocks.0.mlp.b_in", {mlp}},
             {"blocks.0.mlp.W_out", {mlp, d}},
             {"blocks.0.mlp.b_out", {d}},
             {"unembed.W_U", {d, vocab}}};
  const std::vector<std::string> norms = {"blocks.0.ln1", "blocks.0.ln2", "ln_final"};
  for (const std::string& norm : norms) shapes_[norm + ".w"] = shapes_[norm + ".b"] = {d};
  for (const auto& [name, shape] : shapes_) {
    std::size_t n = 1;
    for (const std::int64_t m : shape) n *= static_cast<std::size_t>(m);
    values_[name].assign(n, 0.0f);
  }
  for (const std::string& norm : norms) values_[norm + ".w"].assign(config_.d_model, 1.0f);
}

Transformer OneLayerWeights::model() const {
  TensorMap tensors;
  for (const auto& [name, shape] : shapes_)
    tensors[name] = {.name = name,
                     .dtype = DType::kF32,
                     .shape = shape,
                     .bytes = std::as_bytes(std::span(values_.at(name))),
                     .file = {}};
  return Transformer::from_tensors(config_, tensors, config_.model_name);
}

}  // namespace deeptail::modes
