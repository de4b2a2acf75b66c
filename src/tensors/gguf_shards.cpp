#include <filesystem>
#include <optional>

#include "core/json.h"
#include "core/regular_file.h"
#include "tensors/gguf.h"

namespace deeptail {

namespace {

constexpr std::size_t kMaxShards = 99999;

// NAME of a file NAME-00002-of-00003.gguf that is one of `count`, or nothing.
std::optional<std::string> shard_prefix(const std::string& path, std::uint64_t number, std::uint64_t count) {
  const std::string ending = fmt::format("-{:05}-of-{:05}.gguf", number + 1, count);
  if (!path.ends_with(ending)) return std::nullopt;
  return path.substr(0, path.size() - ending.size());
}

struct Split {
  std::uint64_t number = 0, count = 1;
};
Split split_of(const GgufMetadata& metadata) {
  if (!metadata.has("split.count")) return {};
  Split split{.count = metadata.count("split.count", 0, kMaxShards)};
  if (split.count <= 1) return {};
  split.number = metadata.count("split.no", 0, split.count - 1);
  return split;
}

Gguf parse_whole(const std::shared_ptr<const InputFile>& file) {
  Gguf out = parse_gguf(file->bytes(), file->path());
  for (auto& [name, tensor] : out.tensors) tensor.file = file;
  return out;
}

Gguf read_shard(const std::string& path, const Split& expected) {
  Gguf shard = parse_whole(std::make_shared<const InputFile>(path));
  const Split split = split_of(shard.metadata);
  if (split.number != expected.number || split.count != expected.count)
    throw InputError("{}: keys split.no and split.count say shard {} of {}, expected {} of {} from its name",
                     path, split.number + 1, split.count, expected.number + 1, expected.count);
  return shard;
}

}  // namespace

Gguf read_gguf(std::shared_ptr<const InputFile> file) {
  Gguf named = parse_whole(file);
  const Split split = split_of(named.metadata);
  if (split.count == 1) return named;
  const std::string path = file->path();
  const auto prefix = shard_prefix(path, split.number, split.count);
  if (!prefix)
    throw InputError("{}: shard {} of {} by its keys, expected a name that ends in -{:05}-of-{:05}.gguf",
                     path, split.number + 1, split.count, split.number + 1, split.count);
  Gguf all;
  for (std::uint64_t i = 0; i < split.count; ++i) {
    Gguf shard = i == split.number
                     ? std::move(named)
                     : read_shard(fmt::format("{}-{:05}-of-{:05}.gguf", *prefix, i + 1, split.count),
                                  {.number = i, .count = split.count});
    for (auto& [name, tensor] : shard.tensors) {
      const std::string where = describe(tensor);
      if (!all.tensors.emplace(name, std::move(tensor)).second)
        throw InputError("{}: is in an earlier shard too", where);
    }
    if (i == 0) all.metadata = std::move(shard.metadata);
  }
  if (const std::uint64_t n = all.metadata.count("split.tensors.count", 0, UINT32_MAX);
      n != all.tensors.size())
    throw InputError("{}: key 'split.tensors.count' says {} tensors, found {} in all shards", path, n,
                     all.tensors.size());
  return all;
}

Gguf read_gguf(const std::string& path) { return read_gguf(std::make_shared<const InputFile>(path)); }

GgufMetadata read_gguf_metadata(const std::string& path) {
  const RegularFile file(path);
  // Keys end somewhere: more and more is read until they do, or until they cannot.
  for (std::size_t n = std::size_t{1} << 22;; n *= 2) {
    std::vector<std::byte> bytes(std::min(n, file.size()));
    file.read_all(0, bytes);
    try {
      GgufMetadata metadata = parse_gguf_metadata(bytes, path);
      return split_of(metadata).count == 1 ? std::move(metadata) : read_gguf(path).metadata;
    } catch (const InputError&) {
      if (bytes.size() == file.size()) throw;
    }
  }
}

}  // namespace deeptail
