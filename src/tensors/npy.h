// NumPy .npy, versions 1, 2 and 3:
//
//   offset 0   "\x93NUMPY", u8 major, u8 minor
//   offset 8   header length: u16 in version 1, u32 in 2 and 3; little endian
//   then       the header, a Python dictionary literal: {'descr': '<f4', 'fortran_order': False, 'shape': (2,
//   3), }
//              padded with spaces, ending in '\n'
//   then       the values, row-major, up to the end of the file
#pragma once

#include "deeptail/tensors.h"

namespace deeptail {

// The tensor points into `file` and is named ""; `where` names the file in messages.
Tensor parse_npy(std::span<const std::byte> file, std::string_view where);

}  // namespace deeptail
