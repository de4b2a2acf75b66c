// GPT-2: fused queries, keys and values in Conv1D's layout, a tied head.
#include "model/families/hf_config.h"
#include "model/families/hf_tensors.h"
#include "model/families/rows.h"

namespace deeptail {

namespace {

ModelConfig read_gpt2(const JsonNode& json) {
  HfConfig keys(json);
  ModelConfig c;
  c.n_layers = keys.size("n_layer", 1024);
  c.d_model = keys.size("n_embd", 1u << 16);
  c.n_heads = keys.size("n_head", 1u << 16);
  c.d_mlp = keys.size_or("n_inner", 1u << 20, 4 * c.d_model);
  c.n_ctx = keys.size("n_positions", 1u << 20);
  c.d_vocab = keys.size("vocab_size", 1u << 24);
  c.d_head = keys.head_size(c);
  c.eps = keys.eps("layer_norm_epsilon", 1e-5);
  c.arch.mlp = gelu_of(keys, "activation_function", "gelu_new");
  const bool by_head = keys.flag("scale_attn_weights", true);
  const bool by_layer = keys.flag("scale_attn_by_inverse_layer_idx", false);
  using Scale = Architecture::AttentionScale;
  if (by_layer && !by_head)
    keys.at("scale_attn_weights").fail_expected("true with scale_attn_by_inverse_layer_idx");
  c.arch.attention_scale = !by_head ? Scale::kOne : by_layer ? Scale::kByHeadAndLayer : Scale::kByHead;
  c.arch.tied_head = keys.flag("tie_word_embeddings", true);
  keys.only("add_cross_attention", false);
  keys.refuse_others();
  return c;
}

EndWeights gpt2_ends(const ModelConfig& c, TensorTaker& tensors) {
  const std::string at = prefix_of(tensors, "transformer.", "wte.weight");
  EndWeights out;
  out.w_e = tensors.take(at + "wte.weight", {c.d_vocab, c.d_model});
  out.w_pos = tensors.take(at + "wpe.weight", {c.n_ctx, c.d_model});
  out.ln_final = take_layer_norm(tensors, at + "ln_f", c.d_model);
  out.w_u = take_head(tensors, {"lm_head.weight"}, c, out.w_e);
  return out;
}

BlockWeights gpt2_block(const ModelConfig& c, TensorTaker& tensors, std::size_t layer) {
  const std::string at = prefix_of(tensors, "transformer.", "wte.weight") + fmt::format("h.{}.", layer);
  const Matrix qkv = take_conv1d(tensors, at + "attn.c_attn", c.d_model, 3 * c.d_attn());
  return {.ln1 = take_layer_norm(tensors, at + "ln_1", c.d_model),
          .ln2 = take_layer_norm(tensors, at + "ln_2", c.d_model),
          .w_q = take_columns(qkv, 0, c.d_attn()),
          .w_k = take_columns(qkv, c.d_attn(), c.d_attn()),
          .w_v = take_columns(qkv, 2 * c.d_attn(), c.d_attn()),
          .w_o = take_conv1d(tensors, at + "attn.c_proj", c.d_attn(), c.d_model),
          .w_in = take_conv1d(tensors, at + "mlp.c_fc", c.d_model, c.d_mlp),
          .w_out = take_conv1d(tensors, at + "mlp.c_proj", c.d_mlp, c.d_model)};
}

}  // namespace

Family gpt2_family() {
  return {.name = "gpt2",
          .read = read_gpt2,
          .take_ends = gpt2_ends,
          .take_block = gpt2_block,
          .buffers = {".attn.bias", ".attn.masked_bias"}};
}

}  // namespace deeptail
