#include "tensors/sharded.h"

#include <filesystem>

#include "core/json.h"
#include "tensors/safetensors.h"
#include "tensors/sniff.h"
#include "tensors/torch_file.h"

namespace deeptail {

namespace {

// The index must not lead outside its folder.
bool is_plain_file_name(std::string_view name) {
  return !name.empty() && name != "." && name != ".." &&
         name.find_first_of(std::string_view("/\\\0", 3)) == name.npos;
}

TensorMap parse_shard(const InputFile& file, const std::string& index) {
  const Format format = sniff(file);
  if (format == Format::kSafetensors) return parse_safetensors(file.bytes(), file.path());
  if (format == Format::kTorchZip) return parse_torch_zip(file.bytes(), file.path());
  throw InputError("{}: expected a safetensors or PyTorch shard, as {} says, found {}", file.path(), index,
                   name_of(format));
}

}  // namespace

ShardMap parse_shard_index(std::string_view text, std::string_view where) {
  const Json index = parse_json(text, where);
  const auto weight_map = index.find("weight_map");
  if (!index.is_object() || weight_map == index.end() || !weight_map->is_object())
    throw InputError("{}: expected {{\"weight_map\": {{tensor: shard file}}}}", where);
  ShardMap shards;
  for (const auto& [tensor, shard] : weight_map->items()) {
    if (!shard.is_string() || !is_plain_file_name(shard.get_ref<const std::string&>()))
      throw InputError("{}: tensor '{}': expected the name of a file next to the index, found '{}'", where,
                       printable(tensor),
                       shard.is_string() ? printable(shard.get<std::string>()) : shard.type_name());
    shards[shard.get<std::string>()].insert(tensor);
  }
  return shards;
}

TensorMap read_sharded(std::string_view index, const std::string& path) {
  const auto folder = std::filesystem::path(path).parent_path();
  TensorMap all;
  for (const auto& [shard, names] : parse_shard_index(index, path)) {
    const auto file = std::make_shared<const InputFile>((folder / shard).string());
    for (auto& [name, tensor] : parse_shard(*file, path)) {
      if (!names.contains(name))
        throw InputError("{}: holds tensor '{}', which {} does not list for it", file->path(),
                         printable(name), path);
      tensor.file = file;
      all.emplace(name, std::move(tensor));
    }
    for (const std::string& name : names)
      if (!all.contains(name))
        throw InputError("{}: tensor '{}' is missing, though {} lists it there", file->path(),
                         printable(name), path);
  }
  return all;
}

}  // namespace deeptail
