// GGUF: keys with typed values, then the tensors, in one file.
//
//   "GGUF" | u32 version (2, 3) | u64 n_tensors | u64 n_keys
//   n_keys x    (string key, u32 type, value)
//   n_tensors x (string name, u32 n_dims, u64 sizes[n_dims], u32 type, u64 offset)
//   padding to the alignment | data
//
//   string: u64 length, bytes.  array: u32 type, u64 length, values.  bool: one byte.
//   alignment: key general.alignment (u32, a power of two), else 32. Offsets count from the start of the data.
//
// The first size is that of the fastest dimension, so shapes are turned around: sizes {in, out} are a
// row-major [out, in]. The tensors follow each other with nothing between them but padding.
//
// A model may be cut into shards NAME-00001-of-00003.gguf, each a GGUF file with keys split.no, split.count
// and split.tensors.count; the first has the model's keys.
#pragma once

#include "deeptail/tensors.h"
#include "tensors/gguf_metadata.h"

namespace deeptail {

struct Gguf {
  GgufMetadata metadata = GgufMetadata();
  TensorMap tensors = {};
};

inline bool is_gguf(std::string_view file) { return file.starts_with("GGUF"); }
bool is_gguf_file(const std::string& path);  // looks at the first bytes; false for what is no file

// One file; the tensors point into it, `where` names it in messages.
Gguf parse_gguf(std::span<const std::byte> file, std::string_view where);

// The keys of one file, of which there may be no more than they need.
GgufMetadata parse_gguf_metadata(std::span<const std::byte> file, std::string_view where);

// A model: the file, and where it is a shard all others, which lie beside it.
Gguf read_gguf(std::shared_ptr<const InputFile> file);
Gguf read_gguf(const std::string& path);
// Its keys alone: no more of the file is read than they need.
GgufMetadata read_gguf_metadata(const std::string& path);

}  // namespace deeptail
