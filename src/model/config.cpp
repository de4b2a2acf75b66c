#include <cfloat>
#include <cmath>

#include "deeptail/model.h"
#include "model/config_keys.h"
#include "model/families/family.h"

namespace deeptail {

namespace {

std::size_t size_key(const JsonNode& json, const char* key, std::size_t limit = 1u << 24) {
  return json.at(key).count(1, limit);
}

std::size_t size_key_or(const JsonNode& json, const char* key, std::size_t limit, std::size_t otherwise) {
  return json.has(key) ? size_key(json, key, limit) : otherwise;
}

// The names under which files keep it; those that are there must agree.
float read_eps(const JsonNode& json, float otherwise) {
  const char* first = nullptr;
  float eps = otherwise;
  for (const char* key : {"eps", "ln_eps", "layer_norm_eps", "layer_norm_epsilon"}) {
    if (!json.has(key)) continue;
    const double value = json.at(key).number();
    if (!(value >= static_cast<double>(FLT_MIN) && value < 1.0))  // below it float32 has no normal numbers
      json.at(key).fail_expected(fmt::format("a number from {:.2g} to 1", FLT_MIN));
    if (first != nullptr && eps != static_cast<float>(value))
      throw InputError("{}: {} here, but {} in key \"{}\": expected one eps", json.at(key).where(), value,
                       eps, first);
    first = key;
    eps = static_cast<float>(value);
  }
  return eps;
}

std::string read_tokenizer_file(const JsonNode& json) {
  if (!json.has("tokenizer_file")) return "";
  const std::string& file = json.at("tokenizer_file").text();
  if (file.find('\0') != std::string::npos) json.at("tokenizer_file").fail_expected("a path without NUL");
  return file;
}

// -1 is what TransformerLens writes for "as usual".
void require_consistent(const JsonNode& json, const ModelConfig& config) {
  if (json.has("d_vocab_out") && json.at("d_vocab_out").value() != -1 &&
      json.at("d_vocab_out").value() != config.d_vocab)
    json.at("d_vocab_out").fail_expected(fmt::format("d_vocab = {}", config.d_vocab));
  if (json.has("attn_scale")) {
    const double scale = json.at("attn_scale").number(),
                 usual = std::sqrt(static_cast<double>(config.d_head));
    if (scale != -1.0 && !(std::abs(scale - usual) <= 1e-6 * usual))
      json.at("attn_scale").fail_expected(fmt::format("sqrt(d_head) = {}", usual));
  }
}

}  // namespace

namespace {

// A file in TransformerLens's words may well say where its weights came from.
bool is_huggingface(const JsonNode& config) {
  const Json& json = config.value();
  return !json.contains("d_vocab") && (json.contains("model_type") || json.contains("architectures"));
}

ModelConfig read_huggingface(const JsonNode& json) {
  const std::string& name = json.at("model_type").text();
  const Family* family = find_family(name);
  if (family == nullptr || family->read == nullptr)
    throw InputError("{} has no engine here: expected one of {}, or a model in TransformerLens's words",
                     fmt::format("{}: {}", json.at("model_type").where(), json.at("model_type").found()),
                     fmt::join(family_names(), ", "));
  ModelConfig config = family->read(json);
  config.family = name;
  return config;
}

}  // namespace

float ModelConfig::attention_scale(std::size_t layer) const {
  using Scale = Architecture::AttentionScale;
  if (arch.attention_scale == Scale::kOne) return 1.0f;
  const float by_head = 1.0f / std::sqrt(static_cast<float>(d_head));
  return arch.attention_scale == Scale::kByHead ? by_head : by_head / static_cast<float>(layer + 1);
}

ModelConfig parse_config(std::string_view text, std::string_view where) {
  const Json document = parse_json(text, where);
  const JsonNode json(document, where);
  json.expect_object();
  if (is_huggingface(json)) return read_huggingface(json);
  ModelConfig config;
  config.n_layers = size_key(json, "n_layers", 1024);
  config.d_model = size_key(json, "d_model", 1u << 16);
  config.n_heads = size_key(json, "n_heads", 1u << 16);
  config.d_head = size_key_or(json, "d_head", 1u << 16, config.d_model / config.n_heads);
  config.d_mlp = size_key_or(json, "d_mlp", 1u << 20, 4 * config.d_model);
  config.n_ctx = size_key(json, "n_ctx", 1u << 20);
  config.d_vocab = size_key(json, "d_vocab");
  if (config.d_head == 0) throw InputError("{}: d_head is 0: more heads than d_model", where);
  config.eps = read_eps(json, config.eps);
  if (json.has("model_name")) config.model_name = json.at("model_name").text();
  config.tokenizer_file = read_tokenizer_file(json);
  check_supported_keys(json);
  require_consistent(json, config);
  return config;
}

}  // namespace deeptail
