// Quantised values: blocks of integers that share one or two scales, as GGUF files hold them. A block lies in
// one row. Halves are IEEE binary16; everything is little endian.
//
//   Q4_0    32 values,  18 bytes   half d; 16 bytes                     d (n - 8)
//   Q4_1    32 values,  20 bytes   half d, m; 16 bytes                  d n + m
//   Q5_0    32 values,  22 bytes   half d; u32 fifth bits; 16 bytes     d (n - 16)
//   Q5_1    32 values,  24 bytes   half d, m; u32 fifth bits; 16 bytes  d n + m
//   Q8_0    32 values,  34 bytes   half d; 32 signed bytes              d q
//   Q4_K   256 values, 144 bytes   half d, e; 12 bytes of six-bit S, M; 128 bytes            (d S) n - (e M)
//   Q5_K   256 values, 176 bytes   half d, e; 12 bytes of S, M; 32 bytes of fifth bits; 128  (d S) n - (e M)
//   Q6_K   256 values, 210 bytes   128 bytes; 64 bytes; 16 signed bytes s; half d            (d s) (n - 32)
//
// Products and sums are rounded to fp32 in the order in which they are written here.
#pragma once

#include <cstddef>

#include "deeptail/tensors.h"

namespace deeptail {

// Values that are stored together, and their bytes; {1, size} for the types that are stored one by one.
struct BlockSize {
  std::size_t values, bytes;
};
BlockSize block_size(DType dtype);

// out: [block_size(dtype).values]. Only for the types above.
using UnpackBlock = void (*)(const std::byte* block, float* out);
UnpackBlock unpack_block(DType dtype);

}  // namespace deeptail
