#include "model/families/tensor_taker.h"

#include <algorithm>
#include <stdexcept>

#include "core/json.h"

namespace deeptail {

namespace {

bool share_bytes(const TensorMap& tensors) {
  std::vector<std::span<const std::byte>> parts;
  for (const auto& [name, tensor] : tensors) parts.push_back(tensor.bytes);
  std::ranges::sort(parts, {}, [](const auto& part) { return part.data(); });
  for (std::size_t i = 1; i < parts.size(); ++i)
    if (parts[i - 1].data() + parts[i - 1].size() > parts[i].data()) return true;
  return false;
}

}  // namespace

TensorTaker::TensorTaker(const TensorMap& tensors, const std::string& where, After after)
    : tensors_(tensors), where_(where), give_back_(after == After::kGiveBack && !share_bytes(tensors)) {}

std::vector<float> TensorTaker::take(const std::string& name, std::initializer_list<std::size_t> sizes) {
  const auto it = tensors_.find(name);
  if (it == tensors_.end()) throw InputError("{}: tensor {} is missing", where_, name);
  const std::vector<std::int64_t> expected(sizes.begin(), sizes.end());
  if (it->second.shape != expected)
    throw InputError("{}: tensor {}: expected shape {} by the config, found {}", where_, name,
                     shape_text(expected), shape_text(it->second.shape));
  const bool first = used_.insert(name).second;
  if (give_back_ && !first) throw std::logic_error("tensor " + name + " is taken twice");
  std::vector<float> values = to_float(it->second);
  if (give_back_ && it->second.file) it->second.file->give_back(it->second.bytes);
  return values;
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
