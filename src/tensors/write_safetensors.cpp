#include "core/json.h"
#include "core/write_file.h"
#include "deeptail/tensors.h"
#include "tensors/layout.h"

namespace deeptail {

void write_safetensors(const std::string& path, std::span<const NamedValues> tensors,
                       const std::map<std::string, std::string>& metadata) {
  Json header = Json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  std::size_t size = 0;
  for (const NamedValues& t : tensors) {
    if (t.shape.size() > kMaxRank || byte_size(DType::kF32, t.shape) != t.values.size_bytes())
      throw std::invalid_argument(fmt::format("write_safetensors: {}: shape {} does not hold {} values",
                                              t.name, shape_text(t.shape), t.values.size()));
    header[t.name] = {
        {"dtype", "F32"}, {"shape", t.shape}, {"data_offsets", {size, size + t.values.size_bytes()}}};
    size += t.values.size_bytes();
  }
  std::string text = json_text(header);
  text.append((8 - text.size() % 8) % 8, ' ');  // the data starts aligned

  const std::uint64_t length = text.size();
  std::string file(reinterpret_cast<const char*>(&length), sizeof(length));
  file.reserve(sizeof(length) + text.size() + size);
  file += text;
  for (const NamedValues& t : tensors)
    file.append(reinterpret_cast<const char*>(t.values.data()), t.values.size_bytes());
  write_file(path, file);
}

}  // namespace deeptail
