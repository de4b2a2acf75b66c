// safetensors: a JSON header, then the tensors back to back.
//
//   offset 0      u64 n, little endian: bytes of the header, at most 100 MB
//   offset 8      n bytes of JSON: {"NAME": {"dtype": "F32", "shape": [2, 3], "data_offsets": [begin, end]},
//   ...},
//                 optionally "__metadata__": {string: string}, padded with spaces
//   offset 8 + n  the data; data_offsets count from here
//
// The ranges cover the data without overlap and without holes, and each has the size its shape and dtype
// demand.
#pragma once

#include "deeptail/tensors.h"

namespace deeptail {

// The tensors point into `file`; `where` names it in messages.
TensorMap parse_safetensors(std::span<const std::byte> file, std::string_view where);
// Its "__metadata__"; empty where there is none.
std::map<std::string, std::string> parse_safetensors_metadata(std::span<const std::byte> file,
                                                              std::string_view where);

}  // namespace deeptail
