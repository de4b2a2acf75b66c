#include <array>
#include <cmath>
#include <utility>

#include "core/json.h"
#include "deeptail/model.h"

namespace deeptail {

namespace {

std::size_t size_key(const Json& json, const char* key, std::string_view where,
                     std::size_t limit = 1u << 24) {
  if (!json.contains(key)) throw InputError("{}: key \"{}\" is missing", where, key);
  const Json& value = json.at(key);
  if (!value.is_number_integer() || value.get<std::int64_t>() < 1 ||
      static_cast<std::uint64_t>(value.get<std::int64_t>()) > limit)
    throw InputError("{}: key \"{}\": expected a whole number from 1 to {}, found {}", where, key, limit,
                     printable(json_text(value, true)));
  return value.get<std::size_t>();
}

// Keys that change what the model computes: absent, or one of the values that this engine implements.
void require_supported(const Json& json, std::string_view where) {
  const std::array<std::pair<const char*, std::vector<Json>>, 12> supported = {{
      {"act_fn", {"gelu"}},
      {"normalization_type", {"LN"}},
      {"normalization", {"LN"}},
      {"positional_embedding_type", {"standard"}},
      {"attention_dir", {"causal"}},
      {"attn_only", {false}},
      {"shortformer_pos", {false}},
      {"parallel_attn_mlp", {false}},
      {"gated_mlp", {false}},
      {"use_attn_scale", {true}},
      {"use_local_attn", {false}},
      {"final_rms", {false}},
  }};
  for (const auto& [key, values] : supported) {
    if (!json.contains(key) || json.at(key).is_null()) continue;
    if (std::find(values.begin(), values.end(), json.at(key)) == values.end())
      throw InputError("{}: key \"{}\": {} is not supported, only {}", where, key,
                       printable(json_text(json.at(key), true)), json_text(values[0]));
  }
}

void require_consistent(const Json& json, const ModelConfig& config, std::string_view where) {
  if (json.contains("d_vocab_out") && json.at("d_vocab_out").is_number_integer() &&
      json.at("d_vocab_out").get<std::int64_t>() >= 0 &&
      json.at("d_vocab_out").get<std::size_t>() != config.d_vocab)
    throw InputError("{}: d_vocab_out must equal d_vocab ({})", where, config.d_vocab);
  if (json.contains("attn_scale") && json.at("attn_scale").is_number()) {
    const double scale = json.at("attn_scale").get<double>();
    const double expected = std::sqrt(static_cast<double>(config.d_head));
    if (scale > 0 && std::abs(scale - expected) > 1e-6 * expected)
      throw InputError("{}: attn_scale {} is not supported, only sqrt(d_head) = {}", where, scale, expected);
  }
}

}  // namespace

ModelConfig parse_config(std::string_view text, std::string_view where) {
  const Json json = parse_json(text, where);
  if (!json.is_object()) throw InputError("{}: expected a JSON object", where);
  require_supported(json, where);
  ModelConfig config;
  config.n_layers = size_key(json, "n_layers", where, 1024);
  config.d_model = size_key(json, "d_model", where, 1u << 16);
  config.n_heads = size_key(json, "n_heads", where, 1u << 16);
  config.d_head =
      json.contains("d_head") ? size_key(json, "d_head", where, 1u << 16) : config.d_model / config.n_heads;
  config.d_mlp = json.contains("d_mlp") ? size_key(json, "d_mlp", where, 1u << 20) : 4 * config.d_model;
  config.n_ctx = size_key(json, "n_ctx", where, 1u << 20);
  config.d_vocab = size_key(json, "d_vocab", where);
  if (config.d_head == 0) throw InputError("{}: d_head is 0: more heads than d_model", where);
  if (const auto it = json.find("eps"); it != json.end() && !it->is_null()) {
    if (!it->is_number() || !(it->get<double>() > 0.0 && it->get<double>() < 1.0))
      throw InputError("{}: key \"eps\": expected a number between 0 and 1", where);
    config.eps = it->get<float>();
  }
  for (auto [key, out] :
       {std::pair{"model_name", &config.model_name}, {"tokenizer_file", &config.tokenizer_file}})
    if (const auto it = json.find(key); it != json.end() && it->is_string()) *out = it->get<std::string>();
  require_consistent(json, config, where);
  return config;
}

}  // namespace deeptail
