// Events as JSON: {"target": [310, " the"]}, {"contains": " wizard", "within": 40, "temperature": 0.8}.
#pragma once

#include <memory>

#include "core/json_node.h"
#include "deeptail/event.h"
#include "deeptail/load.h"

namespace deeptail {

// target: an id, a token's text, or several of these: any of them will do. With "sampled": true the next token is drawn.
// starts_with, contains, matches, tokens_any: what a continuation of at most `within` tokens has, with temperature, top_k,
// top_p, greedy and stop. model: null where there are activations alone. Throws InputError.
std::unique_ptr<Event> event_of_json(const JsonNode& json, const LoadedModel* model, const Head& head);

}  // namespace deeptail
