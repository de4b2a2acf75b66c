// The tokenizer inside a GGUF file.
#pragma once

#include "deeptail/load.h"
#include "tensors/gguf.h"
#include "text/vocabulary.h"

namespace deeptail {

// Nothing where the file holds none. Throws InputError for a kind of tokenizer, or a way to cut text, that is
// not known here: another way would give other ids.
std::optional<NamedTokenizer> gguf_tokenizer(const GgufMetadata& keys);

// MODEL.tokenizer.json of MODEL.gguf: where it exists, it is taken instead of the file's own.
std::string tokenizer_beside(const std::string& path);

// Keys tokenizer.ggml.*, of models "llama" (SentencePiece) and "gpt2" (byte level).
Vocabulary gguf_vocabulary(const GgufMetadata& keys);

}  // namespace deeptail
