#include "model/families/hf_config.h"

#include <algorithm>
#include <cfloat>

namespace deeptail {

namespace {

constexpr std::string_view kHarmless[] = {
    "architectures", "auto_map", "model_type", "model_name", "name_or_path", "finetuning_task",
    "task_specific_params", "problem_type", "id2label", "label2id", "num_labels", "tokenizer_class", "prefix",
    "pretraining_tp", "use_cache", "gradient_checkpointing", "use_bfloat16", "chunk_size_feed_forward",
    "is_llama_config", "unsloth_fixed", "reorder_and_upcast_attn", "attn_implementation",
    "transformers.js_config", "n_ctx", "torchscript", "use_flash_attn", "use_flash_attention_2",
    "flash_attention", "keys_to_ignore_at_inference", "license", "language", "tags",
    // how text is generated, which estimates do not ask about
    "max_length", "min_length", "max_new_tokens", "do_sample", "early_stopping", "num_beams",
    "num_beam_groups", "diversity_penalty", "temperature", "top_k", "top_p", "typical_p",
    "repetition_penalty", "length_penalty", "no_repeat_ngram_size", "encoder_no_repeat_ngram_size",
    "bad_words_ids", "num_return_sequences", "remove_invalid_values", "exponential_decay_length_penalty",
    "suppress_tokens", "begin_suppress_tokens"};

// Beginnings and ends of names that say how a model was trained, stored, read or summarised.
constexpr std::string_view kHarmlessStarts[] = {"_", "summary_", "output_", "return_", "unsloth_"};
constexpr std::string_view kHarmlessEnds[] = {"_token_id", "_token_ids", "dropout", "dropout_prob",
                                              "pdrop",     "dtype",      "version", "initializer_range"};

bool says_nothing(std::string_view key) {
  const auto starts = [&](std::string_view start) { return key.starts_with(start); };
  const auto ends = [&](std::string_view end) { return key.ends_with(end); };
  return std::ranges::find(kHarmless, key) != std::end(kHarmless) ||
         std::ranges::any_of(kHarmlessStarts, starts) || std::ranges::any_of(kHarmlessEnds, ends);
}

bool is_off(const Json& value) {
  return value.is_null() || value == Json(false) || (value.is_number() && value == Json(0)) ||
         ((value.is_array() || value.is_object() || value.is_string()) && value.empty());
}

}  // namespace

JsonNode HfConfig::at(const char* key) {
  taken_.push_back(key);
  return json_.at(key);
}

std::size_t HfConfig::size(const char* key, std::size_t most) { return at(key).count(1, most); }

std::size_t HfConfig::size_or(const char* key, std::size_t most, std::size_t otherwise) {
  taken_.push_back(key);
  return json_.has(key) ? size(key, most) : otherwise;
}

bool HfConfig::flag(const char* key, bool otherwise) {
  taken_.push_back(key);
  return json_.has(key) ? at(key).boolean() : otherwise;
}

double HfConfig::number(const char* key, double otherwise) {
  taken_.push_back(key);
  return json_.has(key) ? at(key).number() : otherwise;
}

std::string HfConfig::text(const char* key, std::string_view otherwise) {
  taken_.push_back(key);
  return json_.has(key) ? at(key).text() : std::string(otherwise);
}

float HfConfig::eps(const char* key, double otherwise) {
  const double value = number(key, otherwise);
  if (!(value >= static_cast<double>(FLT_MIN) && value < 1.0))
    at(key).fail_expected(fmt::format("a number from {:.2g} to 1", FLT_MIN));
  return static_cast<float>(value);
}

std::size_t HfConfig::head_size(const ModelConfig& c) const {
  if (c.d_model % c.n_heads != 0)
    throw InputError("{}: {} heads of {} values: expected a divisor", where(), c.n_heads, c.d_model);
  return c.d_model / c.n_heads;
}

void HfConfig::only(const char* key, const Json& value) {
  taken_.push_back(key);
  if (json_.has(key) && json_.at(key).value() != value)
    throw InputError("{}: {} is not supported, only {}", json_.at(key).where(), json_.at(key).found(),
                     json_text(value, true));
}

void HfConfig::ignore(std::initializer_list<const char*> keys) {
  taken_.insert(taken_.end(), keys.begin(), keys.end());
}

void HfConfig::refuse_others() const {
  for (const auto& [key, value] : json_.value().items()) {
    if (std::ranges::find(taken_, key) != taken_.end() || is_off(value) || says_nothing(key)) continue;
    throw InputError(
        "{}: {} is not known here and may change what the model computes: expected the keys of transformers' "
        "class for it",
        json_.at(key.c_str()).where(), json_.at(key.c_str()).found());
  }
}

Architecture::Mlp gelu_of(HfConfig& config, const char* key, const char* otherwise) {
  const std::string name = config.text(key, otherwise);
  if (name == "gelu") return Architecture::Mlp::kGelu;
  for (const char* tanh_form : {"gelu_new", "gelu_pytorch_tanh", "gelu_fast"})
    if (name == tanh_form) return Architecture::Mlp::kGeluTanh;
  config.at(key).fail_expected("gelu, gelu_new, gelu_pytorch_tanh or gelu_fast");
}

void read_window(HfConfig& config, bool windowed, ModelConfig& out) {
  if (config.has("layer_types")) {  // it says it of every layer
    windowed = false;
    for (const JsonNode& type : config.at("layer_types").elements()) {
      if (type.text() != "full_attention" && type.text() != "sliding_attention")
        type.fail_expected("full_attention or sliding_attention");
      windowed = windowed || type.text() == "sliding_attention";
    }
  }
  config.ignore({"layer_types"});
  const std::size_t window = config.size_or("sliding_window", 1u << 30, 0);
  if (windowed && window > 0) out.n_ctx = std::min(out.n_ctx, window);
}

void read_kv_heads(HfConfig& config, std::size_t if_absent, ModelConfig& out) {
  const std::size_t otherwise =
      config.absent("num_key_value_heads") && if_absent > 0 ? if_absent : out.n_heads;
  const std::size_t n = config.size_or("num_key_value_heads", 1u << 16, otherwise);
  if (out.n_heads % n != 0)
    throw InputError("{}: {} query heads on {} heads of keys and values: expected a multiple", config.where(),
                     out.n_heads, n);
  out.arch.kv_groups = out.n_heads / n;
}

}  // namespace deeptail
