// Sizes of tensors, with overflow in mind: shapes come from files that may lie.
#pragma once

#include <optional>
#include <span>

#include "deeptail/tensors.h"

namespace deeptail {

// More dimensions than any model uses; a limit keeps the shapes of a hostile file small.
inline constexpr std::size_t kMaxRank = 16;

// Bytes of a row-major tensor. Nothing when a dimension is negative, or when the product of the non-zero
// dimensions does not fit in 63 bits (so that later products of dimensions cannot overflow either), or when
// blocks do not fill a row.
std::optional<std::size_t> byte_size(DType dtype, std::span<const std::int64_t> shape);

}  // namespace deeptail
