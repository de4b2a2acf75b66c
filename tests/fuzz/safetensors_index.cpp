// Any bytes as a shard index: either refused with an InputError, or names of neighbouring files with the
// tensors each must hold.
#include <cstdlib>

#include "tensors/sharded.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const deeptail::ShardMap shards =
        deeptail::parse_shard_index({reinterpret_cast<const char*>(data), size}, "input");
    for (const auto& [shard, tensors] : shards) {
      if (shard.empty() || shard == "." || shard == ".." || tensors.empty()) std::abort();
      for (const char c : shard)
        if (c == '/' || c == '\\' || c == '\0') std::abort();
    }
  } catch (const deeptail::InputError&) {
  }
  return 0;
}
