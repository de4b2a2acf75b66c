// A model cut into several safetensors files, described by model.safetensors.index.json:
//
//   {"metadata": {...}, "weight_map": {"TENSOR NAME": "model-00001-of-00002.safetensors", ...}}
//
// Shards lie next to the index and are named without a folder.
#pragma once

#include <set>

#include "deeptail/tensors.h"

namespace deeptail {

using ShardMap = std::map<std::string, std::set<std::string>>;  // shard file -> the tensors it must hold

// The index alone, no shard is opened; `where` names it in messages.
ShardMap parse_shard_index(std::string_view index, std::string_view where);

// `index` is the text of the file at `path`.
TensorMap read_sharded(std::string_view index, const std::string& path);

}  // namespace deeptail
