// Rotary positions as config.json describes them, folded into one frequency per pair of values.
#include <algorithm>
#include <cmath>
#include <numbers>
#include <optional>

#include "model/families/hf_config.h"

namespace deeptail {

namespace {

// A number of the rope object, or of the config itself where families before transformers 5 keep it.
double positive(const JsonNode& node) {
  const double value = node.number();
  if (!(value > 0.0)) node.fail_expected("a positive number");
  return value;
}

double rope_number(const std::optional<JsonNode>& rope, const char* key, HfConfig& config, const char* flat,
                   double otherwise) {
  config.ignore({key, flat});
  if (rope && rope->has(key)) return positive(rope->at(key));
  for (const char* name : {flat, key})
    if (config.has(name)) return positive(config.at(name));
  return otherwise;
}

void check_rope_keys(const JsonNode& rope) {
  static constexpr std::string_view kKnown[] = {"rope_type",        "type",
                                                "rope_theta",       "partial_rotary_factor",
                                                "factor",           "low_freq_factor",
                                                "high_freq_factor", "original_max_position_embeddings"};
  rope.expect_object();
  for (const auto& [key, value] : rope.value().items())
    if (!value.is_null() && std::ranges::find(kKnown, key) == std::end(kKnown))
      throw InputError("{}: {} is not supported", rope.at(key.c_str()).where(), rope.at(key.c_str()).found());
}

// Wavelengths much longer than the length of training are stretched, much shorter ones stay, and those
// between go over from one to the other.
double llama3_share_kept(const JsonNode& rope, double frequency) {
  const double low = positive(rope.at("low_freq_factor")), high = positive(rope.at("high_freq_factor"));
  const double n = positive(rope.at("original_max_position_embeddings"));
  if (!(high > low)) rope.at("high_freq_factor").fail_expected("more than low_freq_factor");
  const double turns = n * frequency / (2.0 * std::numbers::pi);
  return std::clamp((turns - low) / (high - low), 0.0, 1.0);
}

double scaled(const std::optional<JsonNode>& rope, const std::string& type, double frequency) {
  if (type == "default") return frequency;
  const double factor = positive(rope->at("factor"));
  const double kept = type == "linear" ? 0.0 : llama3_share_kept(*rope, frequency);
  return frequency * ((1.0 - kept) / factor + kept);
}

std::string rope_type(const std::optional<JsonNode>& rope) {
  for (const char* key : {"rope_type", "type"}) {
    if (!rope || !rope->has(key)) continue;
    const std::string& type = rope->at(key).text();
    if (type != "default" && type != "linear" && type != "llama3")
      throw InputError("{}: {} is not supported, only default, linear and llama3", rope->at(key).where(),
                       rope->at(key).found());
    return type;
  }
  return "default";
}

}  // namespace

void read_rotary(HfConfig& config, const RotaryKeys& keys, ModelConfig& out) {
  std::optional<JsonNode> rope;
  for (const char* key : {"rope_scaling", "rope_parameters"})
    if (config.has(key)) rope.emplace(config.at(key));
  if (rope) check_rope_keys(*rope);
  const std::string type = rope_type(rope);
  const double base = rope_number(rope, "rope_theta", config, keys.base, 10000.0);
  const double share = rope_number(rope, "partial_rotary_factor", config, keys.share, keys.usual_share);
  const auto dims = static_cast<std::size_t>(std::min(share, 2.0) * static_cast<double>(out.d_head));
  if (dims < 2 || dims % 2 != 0 || dims > out.d_head || (keys.usual_share == 1.0 && dims != out.d_head))
    throw InputError("{}: rotary positions of {} of a head's {} values: expected {}", config.where(), dims,
                     out.d_head, keys.usual_share == 1.0 ? "all, an even number" : "an even number of them");
  out.arch.positions = Architecture::Positions::kRotary;
  for (std::size_t i = 0; i < dims / 2; ++i) {
    const double exponent = -2.0 * static_cast<double>(i) / static_cast<double>(dims);
    out.arch.frequencies.push_back(scaled(rope, type, std::pow(base, exponent)));
  }
}

}  // namespace deeptail
