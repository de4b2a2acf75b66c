// PyTorch files written by torch.save since 1.6: a zip file of stored entries,
//
//   NAME/data.pkl    a pickle: a tensor, or a dictionary of tensors
//   NAME/data/KEY    the bytes of one storage; tensors are views into storages
//   NAME/byteorder   "little" (PyTorch 2.1 and later)
//   NAME/version, .data/serialization_id and others: not read
//
// In the pickle a tensor is _rebuild_tensor_v2(storage, offset, size, stride, requires_grad, hooks), and a
// storage is the persistent id ("storage", torch.FloatStorage, KEY, device, number of elements).
#pragma once

#include "deeptail/tensors.h"
#include "tensors/zip.h"

namespace deeptail {

// The tensors point into `file`; `where` names it in messages.
TensorMap parse_torch_zip(std::span<const std::byte> file, std::string_view where);

// The second half of the above: `storages` maps KEY to bytes, `file_size` bounds what the tensors may add up
// to.
TensorMap parse_torch_pickle(std::span<const std::byte> pickle, const ZipDirectory& storages,
                             std::size_t file_size, std::string_view where);

}  // namespace deeptail
