#include <array>
#include <cmath>

#include "deeptail/activations.h"

namespace deeptail {

Activations read_activations(const std::string& path) {
  const TensorMap tensors = read_tensors(path);
  if (tensors.size() != 1)
    throw InputError("{}: expected one tensor of activations, found {}", path, tensors.size());
  const Tensor& tensor = tensors.begin()->second;
  if (tensor.shape.size() != 2)
    throw InputError("{}: shape {}: expected activations [n, d_model]", path, shape_text(tensor.shape));
  const std::vector<float> values = to_float(tensor);
  return {.n = static_cast<std::size_t>(tensor.shape[0]),
          .d_model = static_cast<std::size_t>(tensor.shape[1]),
          .values = {values.begin(), values.end()}};
}

void write_activations(const std::string& path, const Activations& a) {
  write_npy(path, a.all(), std::array{static_cast<std::int64_t>(a.n), static_cast<std::int64_t>(a.d_model)});
}

void check_finite(const Activations& a, const std::string& where) {
  const std::span<const float> values = a.all();
  for (std::size_t i = 0; i < values.size(); ++i)
    if (!std::isfinite(values[i]))
      throw InputError("{}: activation {} holds {} in column {}: expected finite values", where,
                       i / a.d_model, values[i], i % a.d_model);
}

void check_activations(const Activations& a, std::size_t d_model, const std::string& where) {
  if (a.d_model != d_model)
    throw InputError("{}: activations of width {}, but the unembedding takes {}", where, a.d_model, d_model);
  if (a.n <= d_model)
    throw InputError(
        "{}: {} activations of dimension {}: expected more rows than columns, better ten times as many",
        where, a.n, d_model);
  check_finite(a, where);
  const ConstRows rows = a.rows();
  std::vector<std::uint8_t> varies(d_model, 0);
  for (std::size_t i = 0; i < a.n; ++i)
    for (std::size_t j = 0; j < d_model; ++j) varies[j] |= rows.row(i)[j] != rows.row(0)[j];
  for (std::size_t j = 0; j < d_model; ++j)
    if (!varies[j])
      throw InputError("{}: column {} is {} in all {} activations: expected columns that vary", where, j,
                       rows.row(0)[j], a.n);
}

}  // namespace deeptail
