// GPT-Neo, TinyStories: scores are not scaled; queries, keys and values have no bias; every other layer may see
// a window only.
#include <algorithm>

#include "model/families/hf_config.h"
#include "model/families/hf_tensors.h"
#include "model/families/rows.h"

namespace deeptail {

namespace {

void check_attention_word(const JsonNode& word, bool& local) {
  if (word.text() != "global" && word.text() != "local") word.fail_expected("global or local");
  local = local || word.text() == "local";
}

// attention_types: [[["global", "local"], 6]]; attention_layers: the same spelled out.
bool has_local_layers(HfConfig& keys) {
  bool local = false;
  if (keys.has("attention_layers")) {
    for (const JsonNode& word : keys.at("attention_layers").elements()) check_attention_word(word, local);
  } else if (keys.has("attention_types")) {
    for (const JsonNode& group : keys.at("attention_types").elements()) {
      if (group.array_size() != 2) group.fail_expected("a list of words and how often it is repeated");
      for (const JsonNode& word : group.element(0).elements()) check_attention_word(word, local);
    }
  } else {
    local = true;  // the class's default: [[["global", "local"], 12]]
  }
  keys.ignore({"attention_types", "attention_layers"});
  return local;
}

ModelConfig read_gpt_neo(const JsonNode& json) {
  HfConfig keys(json);
  ModelConfig c;
  c.n_layers = keys.size("num_layers", 1024);
  c.d_model = keys.size("hidden_size", 1u << 16);
  c.n_heads = keys.size("num_heads", 1u << 16);
  c.d_mlp = keys.size_or("intermediate_size", 1u << 20, 4 * c.d_model);
  c.n_ctx = keys.size("max_position_embeddings", 1u << 20);
  c.d_vocab = keys.size("vocab_size", 1u << 24);
  c.d_head = keys.head_size(c);
  c.eps = keys.eps("layer_norm_epsilon", 1e-5);
  c.arch.mlp = gelu_of(keys, "activation_function", "gelu_new");
  c.arch.attention_scale = Architecture::AttentionScale::kOne;
  c.arch.tied_head = keys.flag("tie_word_embeddings", true);
  const std::size_t window = keys.size_or("window_size", 1u << 30, 256);
  if (has_local_layers(keys)) c.n_ctx = std::min(c.n_ctx, window);
  keys.refuse_others();
  return c;
}

EndWeights gpt_neo_ends(const ModelConfig& c, TensorTaker& tensors) {
  const std::string at = prefix_of(tensors, "transformer.", "wte.weight");
  EndWeights out;
  out.w_e = tensors.take(at + "wte.weight", {c.d_vocab, c.d_model});
  out.w_pos = tensors.take_first_rows(at + "wpe.weight", c.n_ctx, c.d_model);  // as many as a window lets see
  out.ln_final = take_layer_norm(tensors, at + "ln_f", c.d_model);
  out.w_u = take_head(tensors, {"lm_head.weight"}, c, out.w_e);
  return out;
}

BlockWeights gpt_neo_block(const ModelConfig& c, TensorTaker& tensors, std::size_t layer) {
  const std::string at = prefix_of(tensors, "transformer.", "wte.weight") + fmt::format("h.{}.", layer);
  const std::string attn = at + "attn.attention.";
  return {.ln1 = take_layer_norm(tensors, at + "ln_1", c.d_model),
          .ln2 = take_layer_norm(tensors, at + "ln_2", c.d_model),
          .w_q = take_linear(tensors, attn + "q_proj", {c.d_model, c.d_attn(), false}),
          .w_k = take_linear(tensors, attn + "k_proj", {c.d_model, c.d_attn(), false}),
          .w_v = take_linear(tensors, attn + "v_proj", {c.d_model, c.d_attn(), false}),
          .w_o = take_linear(tensors, attn + "out_proj", {c.d_attn(), c.d_model, true}),
          .w_in = take_linear(tensors, at + "mlp.c_fc", {c.d_model, c.d_mlp, true}),
          .w_out = take_linear(tensors, at + "mlp.c_proj", {c.d_mlp, c.d_model, true})};
}

}  // namespace

Family gpt_neo_family() {
  return {.name = "gpt_neo",
          .read = read_gpt_neo,
          .take_ends = gpt_neo_ends,
          .take_block = gpt_neo_block,
          .buffers = {".attn.attention.bias", ".attn.attention.masked_bias"}};
}

}  // namespace deeptail
