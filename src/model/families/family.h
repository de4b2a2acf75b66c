// A family of models: how its files say what it is, and how they name and lay out the weights. One file each;
// the forward pass is the same for all.
#pragma once

#include "core/json_node.h"
#include "model/families/tensor_taker.h"
#include "model/weights.h"

namespace deeptail {

// Weights come in pieces, so that a backend that lays out its own form never holds more than one piece twice.
struct Family {
  const char* name;                             // ModelConfig::family; config.json's model_type
  ModelConfig (*read)(const JsonNode& config);  // null where another kind of file says it
  EndWeights (*take_ends)(const ModelConfig&, TensorTaker&);
  BlockWeights (*take_block)(const ModelConfig&, TensorTaker&, std::size_t layer);
  std::vector<std::string_view> buffers = {};  // ends of names of tensors that are no weights
};

// The row of that name, or null.
const Family* find_family(std::string_view name);
// Of a config that a row has read.
const Family& family_of(const ModelConfig& config);
// Names of the rows that read config.json, for messages.
std::vector<std::string_view> family_names();

// All pieces at once, for a backend that wants the whole; refuses tensors that nobody took.
ModelWeights take_weights(const ModelConfig& config, TensorTaker& tensors);

}  // namespace deeptail
