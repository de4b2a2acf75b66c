// What models' files say of texts.
#pragma once

#include <optional>
#include <span>

#include "deeptail/event_spec.h"
#include "deeptail/load.h"
#include "deeptail/patterns.h"

namespace deeptail {

// The tokens that end a text, as generation_config.json, config.json or a GGUF file name them: ascending; none where none of
// them does.
std::vector<TokenId> end_of_text_tokens(const LoadedModel& model);

// What a spec that is not of a judge or a probe looks for.
struct EventAutomaton {
  std::optional<ByteDfa> dfa;  // none: it is about tokens
  TokenAutomaton automaton;
};
// texts: null where the model has no tokenizer; stop: tokens that end a text. Throws InputError.
EventAutomaton make_event_automaton(const EventSpec& spec, std::span<const TokenId> stop,
                                    const TokenTexts* texts, const LoadedModel& model);

}  // namespace deeptail
