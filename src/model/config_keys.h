// Which keys of a config.json change what a model computes.
#pragma once

#include "core/json_node.h"

namespace deeptail {

// Throws InputError for a key that asks for something that this engine does not compute.
void check_supported_keys(const JsonNode& config);

}  // namespace deeptail
