// Events as JSON: {"target": [310, " the"]}.
#pragma once

#include <memory>
#include <optional>

#include "core/json_node.h"
#include "deeptail/event.h"
#include "deeptail/load.h"

namespace deeptail {

// target: an id, a token's text, or several of these: any of them will do. Throws InputError.
std::unique_ptr<Event> event_of_json(const JsonNode& json, const Head& head,
                                     const std::optional<NamedTokenizer>& tokenizer);

}  // namespace deeptail
