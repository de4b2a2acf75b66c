// Shared by the fuzz targets of the tensor readers.
#pragma once

#include "deeptail/tensors.h"

namespace deeptail {

// Reads every byte the way a user of the tensor does.
inline void touch(const Tensor& tensor) {
  try {
    to_float(tensor);
    to_int64(tensor);
  } catch (const InputError&) {
  }
}

// What a reader may do with any input: return tensors that can be read, or throw InputError.
template <class Read>
void read_or_refuse(Read read) {
  try {
    for (const auto& [name, tensor] : read()) touch(tensor);
  } catch (const InputError&) {
  }
}

}  // namespace deeptail
