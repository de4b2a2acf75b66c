// One function per family, in the file of its name.
#pragma once

#include "model/families/family.h"

namespace deeptail {

Family transformer_lens_family();
std::vector<Family> gguf_families();  // gguf_weights.cpp

}  // namespace deeptail
