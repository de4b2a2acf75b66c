// Which keys of a config.json change what a model computes.
#pragma once

#include "core/json_node.h"

namespace deeptail {

// Throws InputError for a key that asks for something that this engine does not compute.
void check_supported_keys(const JsonNode& config);

// Throws InputError when the file at `path` is a model in a format of its own, GGUF; nothing for any other.
void check_not_gguf(const std::string& path);

}  // namespace deeptail
