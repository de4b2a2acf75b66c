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
std::vector<Family> gguf_families();  // gguf_weights.cpp

}  // namespace deeptail
