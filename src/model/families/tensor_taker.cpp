#include "model/families/tensor_taker.h"

#include <algorithm>

#include "core/json.h"

namespace deeptail {

std::vector<float> TensorTaker::take(const std::string& name, std::initializer_list<std::size_t> sizes) {
  const auto it = tensors_.find(name);
  if (it == tensors_.end()) throw InputError("{}: tensor {} is missing", where_, name);
  const std::vector<std::int64_t> expected(sizes.begin(), sizes.end());
  if (it->second.shape != expected)
    throw InputError("{}: tensor {}: expected shape {} by the config, found {}", where_, name,
                     shape_text(expected), shape_text(it->second.shape));
  used_.insert(name);
  return to_float(it->second);
}

std::vector<float> TensorTaker::take_first_rows(const std::string& name, std::size_t rows,
                                                std::size_t columns) {
  const auto it = tensors_.find(name);
  std::size_t stored = rows;
  if (it != tensors_.end() && it->second.shape.size() == 2 &&
      it->second.shape[0] > static_cast<std::int64_t>(rows))
    stored = static_cast<std::size_t>(it->second.shape[0]);
  std::vector<float> out = take(name, {stored, columns});
  out.resize(rows * columns);
  return out;
}

void TensorTaker::refuse_others(std::span<const std::string_view> buffers) const {
  for (const auto& [name, tensor] : tensors_) {
    if (used_.contains(name)) continue;
    if (std::ranges::none_of(buffers, [&name = name](std::string_view end) { return name.ends_with(end); }))
      throw InputError("{}: tensor {} is not part of this architecture", where_, printable(name));
  }
}

}  // namespace deeptail
