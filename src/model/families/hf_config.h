// The config.json of a HuggingFace model: keys as transformers 4 and 5 write them. Absent keys mean the class's
// default.
#pragma once

#include <initializer_list>
#include <string_view>
#include <vector>

#include "core/json_node.h"
#include "deeptail/model.h"

namespace deeptail {

// Hands out the keys of a config.json and remembers them, so that one that nobody asked for is noticed.
class HfConfig {
 public:
  explicit HfConfig(const JsonNode& json) : json_(json) {}

  std::size_t size(const char* key, std::size_t most);
  std::size_t size_or(const char* key, std::size_t most, std::size_t otherwise);  // also where it is null
  bool flag(const char* key, bool otherwise);
  double number(const char* key, double otherwise);
  std::string text(const char* key, std::string_view otherwise);
  float eps(const char* key, double otherwise);
  std::size_t head_size(const ModelConfig& config) const;  // d_model / n_heads, a whole number
  bool absent(const char* key) const { return !json_.value().contains(key); }
  bool has(const char* key) const { return json_.has(key); }  // and not null
  JsonNode at(const char* key);
  std::string where() const { return json_.where(); }

  // Throws InputError unless the key is absent, null or has this value.
  void only(const char* key, const Json& value);
  // Counted as understood without a look.
  void ignore(std::initializer_list<const char*> keys);
  // Throws InputError for a key that nobody took, unless it is off (null, false, 0, empty) or known to say
  // nothing about the logits.
  void refuse_others() const;

 private:
  const JsonNode& json_;
  std::vector<std::string_view> taken_;
};

// activation: "gelu", "gelu_new" and its other names.
Architecture::Mlp gelu_of(HfConfig& config, const char* key, const char* otherwise);

// rope_parameters (transformers 5), rope_scaling, then the family's own flat keys. Sets positions and frequencies
// of the first `share` of a head's d_head values; families whose usual share is 1 take no other.
struct RotaryKeys {
  const char* base = "rope_theta";
  const char* share = "partial_rotary_factor";
  double usual_share = 1.0;
};
void read_rotary(HfConfig& config, const RotaryKeys& keys, ModelConfig& out);

// A sliding window, where layers have one, limits the context: within it every position sees all before it.
// windowed: whether the other keys say that a window applies to some layer.
void read_window(HfConfig& config, bool windowed, ModelConfig& out);

// Divides n_heads into groups that share keys and values.
void read_kv_heads(HfConfig& config, std::size_t if_absent, ModelConfig& out);

}  // namespace deeptail
