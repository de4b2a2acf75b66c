#include "model/config_keys.h"

#include <algorithm>

namespace deeptail {

namespace {

// A key that changes the logits, and its values that mean what this engine computes, the usual one first.
struct Setting {
  const char* key;
  std::vector<Json> values;
  bool null_is_absent = true;  // TransformerLens writes null for "none": no norm, no activation
};

// TransformerLens's, with what its files say of settings that are off.
const std::vector<Setting>& transformer_lens_settings() {
  static const std::vector<Setting> settings = {
      {"act_fn", {"gelu"}, false},
      {"normalization_type", {"LN"}, false},
      {"normalization", {"LN"}, false},
      {"positional_embedding_type", {"standard"}},
      {"attention_dir", {"causal"}},
      {"attn_only", {false}},
      {"shortformer_pos", {false}},
      {"use_pos_resid", {false}},
      {"factored_embed", {false}},
      {"parallel_attn_mlp", {false}},
      {"gated_mlp", {false}},
      {"use_attn_scale", {true}},
      {"use_local_attn", {false}},
      {"window_size", {nullptr}},
      {"attn_types", {nullptr}},
      {"final_rms", {false}},
      {"rmsnorm_uses_offset", {false}},
      {"post_embedding_ln", {false}},
      {"use_normalization_before_and_after", {false}},
      {"use_qk_norm", {false}},
      {"scale_attn_by_inverse_layer_idx", {false}},
      {"attn_scores_soft_cap", {-1, 0}},
      {"output_logits_soft_cap", {-1, 0}},
      {"num_experts", {nullptr, 0}},
      {"experts_per_token", {nullptr, 0}},
      {"rotary_dim", {nullptr}},
      {"rotary_base", {10000}},
      {"rotary_base_local", {nullptr, 10000}},
      {"rotary_scaling_factor", {1}},
      {"rotary_adjacent_pairs", {false}},
      {"use_NTK_by_parts_rope", {false}},
      {"use_yarn_rope", {false}},
      {"relative_attention_max_distance", {nullptr}},
      {"relative_attention_num_buckets", {nullptr}},
      {"tie_word_embeddings", {false}},
      {"load_in_4bit", {false}},
  };
  return settings;
}

// What other libraries call their settings. In a file with TransformerLens's names they stand for something
// that its reader meant to change.
const std::vector<Setting>& other_settings() {
  static const std::vector<Setting> settings = {
      {"hidden_act", {"gelu"}},
      {"activation_function", {"gelu"}},
      {"sliding_window", {nullptr}},
      {"use_sliding_window", {false}},
      {"attention_types", {nullptr}},
      {"attn_logit_softcapping", {nullptr}},
      {"final_logit_softcapping", {nullptr}},
      {"query_pre_attn_scalar", {nullptr}},
      {"logit_scale", {nullptr, 1}},
      {"logits_scaling", {nullptr, 1}},
      {"embedding_multiplier", {nullptr, 1}},
      {"residual_multiplier", {nullptr, 1}},
      {"attention_multiplier", {nullptr}},
      {"scale_attn_weights", {true}},
      {"use_parallel_residual", {false}},
      {"parallel_residual", {false}},
      {"rope_theta", {nullptr}},
      {"rope_scaling", {nullptr}},
      {"rotary_pct", {nullptr}},
      {"rotary_emb_base", {nullptr}},
      {"partial_rotary_factor", {nullptr}},
      {"rms_norm_eps", {nullptr}},
      {"num_local_experts", {nullptr, 0}},
      {"num_experts_per_tok", {nullptr, 0}},
      {"n_routed_experts", {nullptr, 0}},
      {"alibi", {false}},
      {"multi_query", {false}},
  };
  return settings;
}

void check_setting(const JsonNode& config, const Setting& setting) {
  const auto found = config.value().find(setting.key);
  if (found == config.value().end() || (found->is_null() && setting.null_is_absent)) return;
  if (std::find(setting.values.begin(), setting.values.end(), *found) != setting.values.end()) return;
  throw InputError("{}: {} is not supported, only {}", config.at(setting.key).where(),
                   config.at(setting.key).found(),
                   setting.values[0].is_null() ? "leaving it out" : json_text(setting.values[0]));
}

}  // namespace

void check_supported_keys(const JsonNode& config) {
  for (const Setting& setting : transformer_lens_settings()) check_setting(config, setting);
  for (const Setting& setting : other_settings()) check_setting(config, setting);
  // As many keys and values as queries is what this engine computes.
  for (const char* key : {"n_key_value_heads", "num_key_value_heads", "num_kv_heads"})
    if (config.has(key) && config.at(key).value() != config.at("n_heads").value())
      throw InputError("{}: {} is not supported, only n_heads = {}", config.at(key).where(),
                       config.at(key).found(), config.at("n_heads").found());
}

}  // namespace deeptail
