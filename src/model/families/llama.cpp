// Llama and those that differ from it in a key or two: Mistral (a window), Qwen2 (biases of queries, keys and
// values), Qwen3 (norms of queries and keys).
#include <algorithm>

#include "model/families/hf_config.h"
#include "model/families/hf_tensors.h"
#include "model/families/rows.h"

namespace deeptail {

namespace {

// What all of them share. if_absent: the class's default of key heads and of d_head, 0 for "by the others".
ModelConfig llama_sizes(HfConfig& keys, std::size_t kv_if_absent, std::size_t head_if_absent) {
  ModelConfig c;
  c.n_layers = keys.size("num_hidden_layers", 1024);
  c.d_model = keys.size("hidden_size", 1u << 16);
  c.n_heads = keys.size("num_attention_heads", 1u << 16);
  c.d_mlp = keys.size("intermediate_size", 1u << 20);
  c.n_ctx = keys.size("max_position_embeddings", 1u << 24);
  c.d_vocab = keys.size("vocab_size", 1u << 24);
  const bool by_default = keys.absent("head_dim") && head_if_absent > 0;
  c.d_head = by_default || keys.has("head_dim") ? keys.size_or("head_dim", 1u << 16, head_if_absent)
                                                : keys.head_size(c);
  keys.ignore({"head_dim"});
  c.eps = keys.eps("rms_norm_eps", 1e-6);
  keys.only("hidden_act", "silu");
  c.qkv_bias = c.o_bias = c.mlp_bias = false;
  c.arch.norm = Architecture::Norm::kRms;
  c.arch.mlp = Architecture::Mlp::kSwiGlu;
  c.arch.tied_head = keys.flag("tie_word_embeddings", false);
  read_kv_heads(keys, kv_if_absent, c);
  read_rotary(keys, {}, c);
  return c;
}

ModelConfig read_llama(const JsonNode& json) {
  HfConfig keys(json);
  ModelConfig c = llama_sizes(keys, 0, 0);
  c.qkv_bias = c.o_bias = keys.flag("attention_bias", false);
  c.mlp_bias = keys.flag("mlp_bias", false);
  keys.only("rope_interleaved", false);
  keys.refuse_others();
  return c;
}

ModelConfig read_mistral(const JsonNode& json) {
  HfConfig keys(json);
  ModelConfig c = llama_sizes(keys, 8, 0);
  if (keys.absent("sliding_window")) c.n_ctx = std::min<std::size_t>(c.n_ctx, 4096);  // the class's default
  read_window(keys, true, c);
  keys.refuse_others();
  return c;
}

// Qwen's files name a window and say elsewhere whether it is used, and from which layer on.
void read_qwen_window(HfConfig& keys, ModelConfig& c) {
  const bool used = keys.flag("use_sliding_window", false);
  const double first = keys.number("max_window_layers", 28.0);
  if (used && keys.absent("sliding_window")) c.n_ctx = std::min<std::size_t>(c.n_ctx, 4096);
  if (!used) keys.ignore({"sliding_window"});
  if (used) read_window(keys, first < static_cast<double>(c.n_layers), c);
  if (!used && keys.has("layer_types"))
    for (const JsonNode& type : keys.at("layer_types").elements())
      if (type.text() != "full_attention")
        type.fail_expected("full_attention, since use_sliding_window is off");
  keys.ignore({"layer_types"});
}

ModelConfig read_qwen2(const JsonNode& json) {
  HfConfig keys(json);
  ModelConfig c = llama_sizes(keys, 32, 0);
  c.qkv_bias = true;
  read_qwen_window(keys, c);
  keys.refuse_others();
  return c;
}

ModelConfig read_qwen3(const JsonNode& json) {
  HfConfig keys(json);
  ModelConfig c = llama_sizes(keys, 32, 128);
  c.arch.qk_norm = true;
  c.qkv_bias = c.o_bias = keys.flag("attention_bias", false);
  read_qwen_window(keys, c);
  keys.refuse_others();
  return c;
}

EndWeights llama_ends(const ModelConfig& c, TensorTaker& tensors) {
  const std::string at = prefix_of(tensors, "model.", "embed_tokens.weight");
  EndWeights out;
  out.w_e = tensors.take(at + "embed_tokens.weight", {c.d_vocab, c.d_model});
  out.ln_final = take_rms_norm(tensors, at + "norm", c.d_model);
  out.w_u = take_head(tensors, {"lm_head.weight"}, c, out.w_e);
  return out;
}

BlockWeights llama_block(const ModelConfig& c, TensorTaker& tensors, std::size_t layer) {
  const std::string at =
      prefix_of(tensors, "model.", "embed_tokens.weight") + fmt::format("layers.{}.", layer);
  const std::string attn = at + "self_attn.", mlp = at + "mlp.";
  BlockWeights out{.ln1 = take_rms_norm(tensors, at + "input_layernorm", c.d_model),
                   .ln2 = take_rms_norm(tensors, at + "post_attention_layernorm", c.d_model),
                   .w_q = take_linear(tensors, attn + "q_proj", {c.d_model, c.d_attn(), c.qkv_bias}),
                   .w_k = take_linear(tensors, attn + "k_proj", {c.d_model, c.d_kv(), c.qkv_bias}),
                   .w_v = take_linear(tensors, attn + "v_proj", {c.d_model, c.d_kv(), c.qkv_bias}),
                   .w_o = take_linear(tensors, attn + "o_proj", {c.d_attn(), c.d_model, c.o_bias}),
                   .w_gate = take_linear(tensors, mlp + "gate_proj", {c.d_model, c.d_mlp, c.mlp_bias}),
                   .w_in = take_linear(tensors, mlp + "up_proj", {c.d_model, c.d_mlp, c.mlp_bias}),
                   .w_out = take_linear(tensors, mlp + "down_proj", {c.d_mlp, c.d_model, c.mlp_bias})};
  if (c.arch.qk_norm) {
    out.q_norm = take_rms_norm(tensors, attn + "q_norm", c.d_head);
    out.k_norm = take_rms_norm(tensors, attn + "k_norm", c.d_head);
  }
  return out;
}

Family llama_like(const char* name, ModelConfig (*read)(const JsonNode&)) {
  return {.name = name,
          .read = read,
          .take_ends = llama_ends,
          .take_block = llama_block,
          .buffers = {".rotary_emb.inv_freq"}};
}

}  // namespace

Family llama_family() { return llama_like("llama", read_llama); }
Family mistral_family() { return llama_like("mistral", read_mistral); }
Family qwen2_family() { return llama_like("qwen2", read_qwen2); }
Family qwen3_family() { return llama_like("qwen3", read_qwen3); }

}  // namespace deeptail
