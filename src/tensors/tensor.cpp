#include <cmath>

#include "core/json.h"
#include "deeptail/tensors.h"
#include "tensors/blocks.h"
#include "tensors/byte_reader.h"
#include "tensors/half.h"
#include "tensors/layout.h"

namespace deeptail {

namespace {

std::vector<std::int64_t> index_of(std::size_t element, std::span<const std::int64_t> shape) {
  std::vector<std::int64_t> index(shape.size());
  for (std::size_t axis = shape.size(); axis-- > 0;) {
    const auto dim = static_cast<std::size_t>(shape[axis]);
    index[axis] = static_cast<std::int64_t>(element % dim);
    element /= dim;
  }
  return index;
}

[[noreturn]] void refuse_value(const Tensor& tensor, std::size_t element, float value) {
  const std::string index = shape_text(index_of(element, tensor.shape));
  // A finite fp64 that becomes infinite is a different mistake from an infinity in the file.
  if (tensor.dtype == DType::kF64) {
    const auto wide = load<double>(tensor.bytes.data() + element * sizeof(double));
    if (std::isfinite(wide))
      throw InputError("{}: value {} at index {} does not fit in float32", describe(tensor), wide, index);
  }
  throw InputError(
      "{}: expected finite values, found {} at index {}; the file is damaged or training diverged",
      describe(tensor), std::isnan(value) ? "NaN" : (value > 0 ? "+Inf" : "-Inf"), index);
}

template <class Out, class Stored, class Decode>
std::vector<Out> decode_all(const Tensor& tensor, Decode decode) {
  std::vector<Out> values(tensor.size());
  const std::byte* from = tensor.bytes.data();
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = decode(load<Stored>(from + i * sizeof(Stored)));
    if constexpr (std::is_floating_point_v<Out>)
      if (!std::isfinite(values[i])) refuse_value(tensor, i, values[i]);
  }
  return values;
}

std::vector<float> unpack_all(const Tensor& tensor) {
  const UnpackBlock unpack = unpack_block(tensor.dtype);
  const auto [n, n_bytes] = block_size(tensor.dtype);
  std::vector<float> values(tensor.size());
  const std::byte* from = tensor.bytes.data();
  for (std::size_t first = 0; first < values.size(); first += n, from += n_bytes) {
    unpack(from, values.data() + first);
    // A scale that is no number makes every value of its block none.
    for (std::size_t i = first; i < first + n; ++i)
      if (!std::isfinite(values[i])) refuse_value(tensor, i, values[i]);
  }
  return values;
}

}  // namespace

std::size_t size_of(DType dtype) {
  switch (dtype) {
    case DType::kF64:
    case DType::kI64:
      return 8;
    case DType::kF32:
    case DType::kI32:
      return 4;
    case DType::kF16:
    case DType::kBF16:
      return 2;
    case DType::kU8:
    case DType::kBool:
      return 1;
    default:
      throw std::logic_error("size_of: values of a block have no size of their own");
  }
}

std::size_t Tensor::size() const {
  const auto [n, n_bytes] = block_size(dtype);
  return bytes.size() / n_bytes * n;
}

std::string shape_text(std::span<const std::int64_t> shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

std::string describe(const Tensor& tensor) {
  return fmt::format("{}: tensor '{}'", tensor.file ? tensor.file->path() : "memory", printable(tensor.name));
}

std::optional<std::size_t> byte_size(DType dtype, std::span<const std::int64_t> shape) {
  const auto [n, n_bytes] = block_size(dtype);
  // fp32 values of blocks take more room than the blocks: that product must fit too.
  auto bytes = static_cast<std::int64_t>(n == 1 ? n_bytes : sizeof(float));
  bool empty = false;
  for (const std::int64_t dim : shape) {
    if (dim < 0) return std::nullopt;
    if (dim == 0)
      empty = true;
    else if (__builtin_mul_overflow(bytes, dim, &bytes))
      return std::nullopt;
  }
  if (empty) return 0;
  const auto size = static_cast<std::size_t>(bytes);
  if (n == 1) return size;
  if (shape.empty() || static_cast<std::size_t>(shape.back()) % n != 0) return std::nullopt;
  return size / sizeof(float) / n * n_bytes;
}

std::vector<float> to_float(const Tensor& tensor) {
  const auto cast = [](auto value) { return static_cast<float>(value); };
  switch (tensor.dtype) {
    case DType::kF16:
      return decode_all<float, std::uint16_t>(tensor, half_to_float);
    case DType::kBF16:
      return decode_all<float, std::uint16_t>(tensor, bfloat16_to_float);
    case DType::kF32:
      return decode_all<float, float>(tensor, cast);
    case DType::kF64:
      return decode_all<float, double>(tensor, cast);
    case DType::kI32:
      return decode_all<float, std::int32_t>(tensor, cast);
    case DType::kI64:
      return decode_all<float, std::int64_t>(tensor, cast);
    case DType::kU8:
      return decode_all<float, std::uint8_t>(tensor, cast);
    case DType::kBool:
      return decode_all<float, std::uint8_t>(tensor, [](auto v) { return v != 0 ? 1.0f : 0.0f; });
    default:
      return unpack_all(tensor);
  }
}

std::vector<std::int64_t> to_int64(const Tensor& tensor) {
  const auto cast = [](auto value) { return static_cast<std::int64_t>(value); };
  switch (tensor.dtype) {
    case DType::kI32:
      return decode_all<std::int64_t, std::int32_t>(tensor, cast);
    case DType::kI64:
      return decode_all<std::int64_t, std::int64_t>(tensor, cast);
    case DType::kU8:
      return decode_all<std::int64_t, std::uint8_t>(tensor, cast);
    case DType::kBool:
      return decode_all<std::int64_t, std::uint8_t>(tensor, [](auto v) { return std::int64_t{v != 0}; });
    default:
      throw InputError("{}: expected integers, found {}", describe(tensor), name_of(tensor.dtype));
  }
}

}  // namespace deeptail
