// What the keys of a GGUF file say about the model in it.
#pragma once

#include "deeptail/model.h"
#include "tensors/gguf.h"

namespace deeptail {

// Throws InputError for an architecture that has no engine here, and for a key of the architecture that is not
// understood: it might change what is computed. The model is called as the file.
ModelConfig gguf_config(const Gguf& gguf);

}  // namespace deeptail
