#include "stub_model.h"

#include <map>

namespace deeptail::modes {

Transformer stub_model() {
  constexpr std::size_t kVocab = 4096, kContext = 40, kWidth = 4;
  const std::map<std::string, std::vector<std::int64_t>> shapes = {{"embed.W_E", {kVocab, kWidth}},
                                                                   {"pos_embed.W_pos", {kContext, kWidth}},
                                                                   {"blocks.0.ln1.w", {kWidth}},
                                                                   {"blocks.0.ln1.b", {kWidth}},
                                                                   {"blocks.0.ln2.w", {kWidth}},
                                                                   {"blocks.0.ln2.b", {kWidth}},
                                                                   {"ln_final.w", {kWidth}},
                                                                   {"ln_final.b", {kWidth}},
                                                                   {"blocks.0.attn.W_Q", {1, kWidth, 1}},
                                                                   {"blocks.0.attn.W_K", {1, kWidth, 1}},
                                                                   {"blocks.0.attn.W_V", {1, kWidth, 1}},
                                                                   {"blocks.0.attn.b_Q", {1, 1}},
                                                                   {"blocks.0.attn.b_K", {1, 1}},
                                                                   {"blocks.0.attn.b_V", {1, 1}},
                                                                   {"blocks.0.attn.W_O", {1, 1, kWidth}},
                                                                   {"blocks.0.attn.b_O", {kWidth}},
                                                                   {"blocks.0.mlp.W_in", {kWidth, 1}},
                                                                   {"blocks.0.mlp.b_in", {1}},
                                                                   {"blocks.0.mlp.W_out", {1, kWidth}},
                                                                   {"blocks.0.mlp.b_out", {kWidth}},
                                                                   {"unembed.W_U", {kWidth, kVocab}}};
  const std::vector<float> zeros(kVocab * kWidth, 0.0f);
  TensorMap tensors;
  for (const auto& [name, shape] : shapes) {
    std::size_t size = sizeof(float);
    for (const std::int64_t n : shape) size *= static_cast<std::size_t>(n);
    tensors[name] = {.name = name,
                     .dtype = DType::kF32,
                     .shape = shape,
                     .bytes = std::as_bytes(std::span(zeros)).first(size),
                     .file = {}};
  }
  const ModelConfig config{.model_name = "stub",
                           .n_layers = 1,
                           .d_model = kWidth,
                           .n_heads = 1,
                           .d_head = 1,
                           .d_mlp = 1,
                           .n_ctx = kContext,
                           .d_vocab = kVocab,
                           .eps = 1e-5f,
                           .tokenizer_file = ""};
  return Transformer::from_tensors(config, tensors, "stub model");
}

}  // namespace deeptail::modes
