// What the readers of normalizers, pre-tokenizers, decoders and post-processors share.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "core/json_node.h"

namespace deeptail {

inline const std::string& type_of(const JsonNode& node) { return node.at("type").text(); }

[[noreturn]] void refuse_type(const JsonNode& node, std::string_view supported);

// Calls visit(node) for a part and, when it is a Sequence, for its members instead (under `members`). Throws
// InputError for more of them than any sensible file has.
void for_each_member(const JsonNode& node, const char* members,
                     const std::function<void(const JsonNode&)>& visit);

const std::string& non_empty(const JsonNode& text);
const std::string& one_character(const JsonNode& text);

enum class PrependScheme { always, first, never };
struct Metaspace {
  std::string replacement;  // one character
  PrependScheme scheme;
};
// As a pre-tokenizer and as a decoder; older files say add_prefix_space instead of prepend_scheme.
Metaspace read_metaspace(const JsonNode& node);

}  // namespace deeptail
