// What models' files say of texts.
#pragma once

#include "deeptail/load.h"

namespace deeptail {

// The tokens that end a text, as generation_config.json, config.json or a GGUF file name them: ascending; none where none of
// them does.
std::vector<TokenId> end_of_text_tokens(const LoadedModel& model);

}  // namespace deeptail
