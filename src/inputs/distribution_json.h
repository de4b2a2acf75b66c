// The file form deeptail-distribution-1, and what it shares with other laws.
#pragma once

#include <string>
#include <string_view>

#include "core/json_node.h"
#include "deeptail/inputs.h"

namespace deeptail {

inline constexpr std::string_view kTablesFormat = "deeptail-distribution-1";

// json: of the text, in that form; the text is hashed.
Distribution read_distribution(const JsonNode& json, std::string_view text, std::string_view where,
                               std::string_view folder);

// Throws InputError when both tokenizers are known and differ. what: whose ids they are.
void check_tokenizer(std::string_view what, std::string_view ids_sha256, const ModelConfig& config,
                     std::string_view model_sha256);

}  // namespace deeptail
