// TransformerLens's models name their tokenizer's repository in config.json: "tokenizer_name": "ORG/NAME".
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "deeptail/hub.h"

namespace deeptail {

// The tokenizer's file there; nothing where config.json names none.
std::optional<HubName> tokenizer_named_in(std::string_view config_json, const std::string& where);

}  // namespace deeptail
