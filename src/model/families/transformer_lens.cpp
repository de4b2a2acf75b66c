#include <algorithm>

#include "model/families/rows.h"

namespace deeptail {

namespace {

// TransformerLens's names: heads apart, [n_heads, d_model, d_head].
NormWeights lens_norm(TensorTaker& tensors, const std::string& name, const ModelConfig& c) {
  return {tensors.take(name + ".w", {c.d_model}), tensors.take(name + ".b", {c.d_model})};
}

// w: [n_heads, d_model, d_head] -> [d_model, d_attn], heads side by side; b: [n_heads, d_head] is [d_attn] as
// it stands.
Matrix lens_heads(TensorTaker& tensors, const std::string& at, char name, const ModelConfig& c) {
  const auto w = tensors.take(fmt::format("{}W_{}", at, name), {c.n_heads, c.d_model, c.d_head});
  Matrix out{.in = c.d_model, .out = c.d_attn(), .w = std::vector<float>(w.size())};
  for (std::size_t h = 0; h < c.n_heads; ++h)
    for (std::size_t i = 0; i < c.d_model; ++i)
      std::copy_n(w.begin() + static_cast<std::ptrdiff_t>((h * c.d_model + i) * c.d_head), c.d_head,
                  out.w.begin() + static_cast<std::ptrdiff_t>(i * c.d_attn() + h * c.d_head));
  out.b = tensors.take(fmt::format("{}b_{}", at, name), {c.n_heads, c.d_head});
  return out;
}

BlockWeights lens_block(const ModelConfig& c, TensorTaker& tensors, std::size_t index) {
  const std::string at = fmt::format("blocks.{}.", index), attn = at + "attn.", mlp = at + "mlp.";
  return {.ln1 = lens_norm(tensors, at + "ln1", c),
          .ln2 = lens_norm(tensors, at + "ln2", c),
          .w_q = lens_heads(tensors, attn, 'Q', c),
          .w_k = lens_heads(tensors, attn, 'K', c),
          .w_v = lens_heads(tensors, attn, 'V', c),
          // [n_heads, d_head, d_model] is [d_attn, d_model] as it stands.
          .w_o = {c.d_attn(), c.d_model, tensors.take(attn + "W_O", {c.n_heads, c.d_head, c.d_model}),
                  tensors.take(attn + "b_O", {c.d_model})},
          .w_in = {c.d_model, c.d_mlp, tensors.take(mlp + "W_in", {c.d_model, c.d_mlp}),
                   tensors.take(mlp + "b_in", {c.d_mlp})},
          .w_out = {c.d_mlp, c.d_model, tensors.take(mlp + "W_out", {c.d_mlp, c.d_model}),
                    tensors.take(mlp + "b_out", {c.d_model})}};
}

EndWeights lens_ends(const ModelConfig& c, TensorTaker& tensors) {
  EndWeights out;
  out.w_e = tensors.take("embed.W_E", {c.d_vocab, c.d_model});
  out.w_pos = tensors.take("pos_embed.W_pos", {c.n_ctx, c.d_model});
  out.ln_final = lens_norm(tensors, "ln_final", c);
  out.w_u = {.in = c.d_model, .out = c.d_vocab, .w = tensors.take("unembed.W_U", {c.d_model, c.d_vocab})};
  if (tensors.has("unembed.b_U")) out.w_u.b = tensors.take("unembed.b_U", {c.d_vocab});
  return out;
}

}  // namespace

Family transformer_lens_family() {
  return {.name = "transformer_lens",
          .read = nullptr,  // config.cpp: its config.json names no model_type
          .take_ends = lens_ends,
          .take_block = lens_block,
          .buffers = {".attn.mask", ".attn.IGNORE"}};  // of old files
}

}  // namespace deeptail
