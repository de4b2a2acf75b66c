// A model cut into several safetensors files, described by model.safetensors.index.json:
//
//   {"metadata": {...}, "weight_map": {"TENSOR NAME": "model-00001-of-00002.safetensors", ...}}
//
// Shards lie next to the index and are named without a folder.
#pragma once

#include "deeptail/tensors.h"

namespace deeptail {

// `index` is the text of the file at `path`.
TensorMap read_sharded(std::string_view index, const std::string& path);

}  // namespace deeptail
