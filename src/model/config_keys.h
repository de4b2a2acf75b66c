// Which keys of a config.json change what a model computes.
#pragma once

#include "core/json_node.h"

namespace deeptail {

// Throws InputError for a key that asks for something that this engine does not compute.
void check_supported_keys(const JsonNode& config);

// Throws InputError for the config.json of a HuggingFace model, naming its family.
void check_not_huggingface(const JsonNode& config);

}  // namespace deeptail
