// GPT-NeoX, Pythia: rotary positions on a part of every head, attention and mlp side by side, and queries, keys
// and values interleaved by head.
#include <algorithm>

#include "model/families/hf_config.h"
#include "model/families/hf_tensors.h"
#include "model/families/rows.h"

namespace deeptail {

namespace {

ModelConfig read_gpt_neox(const JsonNode& json) {
  HfConfig keys(json);
  ModelConfig c;
  c.n_layers = keys.size("num_hidden_layers", 1024);
  c.d_model = keys.size("hidden_size", 1u << 16);
  c.n_heads = keys.size("num_attention_heads", 1u << 16);
  c.d_mlp = keys.size("intermediate_size", 1u << 20);
  c.n_ctx = keys.size("max_position_embeddings", 1u << 24);
  c.d_vocab = keys.size("vocab_size", 1u << 24);
  c.d_head = keys.head_size(c);
  c.eps = keys.eps("layer_norm_eps", 1e-5);
  c.arch.mlp = gelu_of(keys, "hidden_act", "gelu");
  c.arch.residual = keys.flag("use_parallel_residual", true) ? Architecture::Residual::kParallel
                                                             : Architecture::Residual::kSequential;
  c.arch.tied_head = keys.flag("tie_word_embeddings", false);
  c.qkv_bias = c.o_bias = keys.flag("attention_bias", true);
  read_rotary(keys, {.base = "rotary_emb_base", .share = "rotary_pct", .usual_share = 0.25}, c);
  keys.refuse_others();
  return c;
}

EndWeights gpt_neox_ends(const ModelConfig& c, TensorTaker& tensors) {
  const std::string at = prefix_of(tensors, "gpt_neox.", "embed_in.weight");
  EndWeights out;
  out.w_e = tensors.take(at + "embed_in.weight", {c.d_vocab, c.d_model});
  out.ln_final = take_layer_norm(tensors, at + "final_layer_norm", c.d_model);
  out.w_u = take_head(tensors, {"embed_out.weight", "lm_head.weight"}, c, out.w_e);
  return out;
}

// Of columns [n_heads, 3, d_head] those of queries 0, keys 1 or values 2.
Matrix every_third(const Matrix& m, std::size_t which, const ModelConfig& c) {
  const std::size_t d = c.d_head;
  Matrix out{.in = m.in, .out = c.d_attn(), .w = std::vector<float>(m.in * c.d_attn())};
  out.b.resize(m.b.empty() ? 0 : c.d_attn());
  for (std::size_t h = 0; h < c.n_heads; ++h) {
    const std::size_t from = (3 * h + which) * d;
    for (std::size_t i = 0; i < m.in; ++i)
      std::copy_n(m.w.data() + i * m.out + from, d, out.w.data() + i * out.out + h * d);
    if (!m.b.empty()) std::copy_n(m.b.data() + from, d, out.b.data() + h * d);
  }
  return out;
}

BlockWeights gpt_neox_block(const ModelConfig& c, TensorTaker& tensors, std::size_t layer) {
  const std::string at =
      prefix_of(tensors, "gpt_neox.", "embed_in.weight") + fmt::format("layers.{}.", layer);
  const Matrix qkv =
      take_linear(tensors, at + "attention.query_key_value", {c.d_model, 3 * c.d_attn(), c.qkv_bias});
  return {.ln1 = take_layer_norm(tensors, at + "input_layernorm", c.d_model),
          .ln2 = take_layer_norm(tensors, at + "post_attention_layernorm", c.d_model),
          .w_q = every_third(qkv, 0, c),
          .w_k = every_third(qkv, 1, c),
          .w_v = every_third(qkv, 2, c),
          .w_o = take_linear(tensors, at + "attention.dense", {c.d_attn(), c.d_model, c.o_bias}),
          .w_in = take_linear(tensors, at + "mlp.dense_h_to_4h", {c.d_model, c.d_mlp, true}),
          .w_out = take_linear(tensors, at + "mlp.dense_4h_to_h", {c.d_mlp, c.d_model, true})};
}

}  // namespace

Family gpt_neox_family() {
  return {.name = "gpt_neox",
          .read = read_gpt_neox,
          .take_ends = gpt_neox_ends,
          .take_block = gpt_neox_block,
          .buffers = {".attention.bias", ".attention.masked_bias", ".rotary_emb.inv_freq"}};
}

}  // namespace deeptail
