// One function per family, in the file of its name.
#pragma once

#include "model/families/family.h"

namespace deeptail {

Family transformer_lens_family();
Family gpt2_family();
Family gpt_neo_family();
Family gpt_neox_family();
Family llama_family();
Family mistral_family();
Family qwen2_family();
Family qwen3_family();

// Of GGUF files, whose names differ from HuggingFace's (gguf_weights.cpp).
inline constexpr const char *kGgufGpt2 = "gguf-gpt2", *kGgufNeoX = "gguf-gptneox", *kGgufLlama = "gguf-llama",
                            *kGgufQwen2 = "gguf-qwen2", *kGgufQwen3 = "gguf-qwen3";
std::vector<Family> gguf_families();

}  // namespace deeptail
