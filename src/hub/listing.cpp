#include "hub/listing.h"

#include <algorithm>

#include "core/block_hash.h"
#include "core/json_node.h"
#include "core/nearest.h"
#include "hub/gguf_parts.h"
#include "hub/safe_path.h"
#include "tensors/sharded.h"

namespace deeptail {

namespace {

constexpr std::uint64_t kLargestFile = std::uint64_t{1} << 50;

// Small ones, of which transformers needs more than we do: so that what is fetched serves both.
constexpr const char* kSmallFiles[] = {"config.json",         "generation_config.json",
                                       "tokenizer.json",      "tokenizer_config.json",
                                       "tokenizer.model",     "vocab.json",
                                       "merges.txt",          "added_tokens.json",
                                       "chat_template.jinja", "special_tokens_map.json"};

std::string hex_of(const JsonNode& node, std::size_t n) {
  if (!is_hex(node.text(), n)) node.fail_expected(fmt::format("{} hex digits", n));
  return node.text();
}

HubFile parse_file(const JsonNode& node) {
  HubFile file;
  file.path = node.at("rfilename").text();
  if (!is_safe_path(file.path))
    node.at("rfilename").fail_expected("a path within the repository, without \"..\" and the like");
  const bool large = node.has("lfs");
  const JsonNode sized = large ? node.at("lfs") : node;
  file.size = sized.at("size").count(0, kLargestFile);
  file.hash = large ? hex_of(sized.at("sha256"), 64) : hex_of(node.at("blobId"), 40);
  return file;
}

bool in_first_folder(const std::string& path) { return path.find('/') == path.npos; }

std::vector<std::string> names_ending(const HubListing& listing, std::string_view ending) {
  std::vector<std::string> names;
  for (const auto& [path, file] : listing.files)
    if (path.ends_with(ending)) names.push_back(path);
  return names;
}

// TransformerLens's repositories have the last weights beside those of earlier steps of the training.
std::vector<std::string> torch_files(const HubListing& listing) {
  std::vector<std::string> found;
  for (const char* ending : {".pth", ".pt"})
    for (const std::string& path : names_ending(listing, ending))
      if (in_first_folder(path)) found.push_back(path);
  std::vector<std::string> last;
  std::copy_if(found.begin(), found.end(), std::back_inserter(last),
               [](const std::string& path) { return path.ends_with("final.pth"); });
  return last.empty() ? found : last;
}

[[noreturn]] void refuse_without_weights(const HubListing& listing, const HubName& name) {
  if (const auto gguf = names_ending(listing, ".gguf"); !gguf.empty())
    throw InputError("model {}: a repository of GGUF files; name one of its {}, such as {}:{}", name.text(),
                     gguf.size(), name.text(), gguf[0]);
  throw InputError(
      "model {}: expected model.safetensors, pytorch_model.bin, the index of several such files, or one .pth "
      "file in the repository, found none of them among {} files",
      name.text(), listing.files.size());
}

std::string find_weights(const HubListing& listing, const HubName& name) {
  for (const char* path : {"model.safetensors", "model.safetensors.index.json", "pytorch_model.bin",
                           "pytorch_model.bin.index.json"})
    if (listing.files.contains(path)) return path;
  const auto found = torch_files(listing);
  if (found.size() == 1) return found[0];
  if (found.empty()) refuse_without_weights(listing, name);
  throw InputError("model {}: expected one .pth or .pt file in the repository, found {}, such as {} and {}",
                   name.text(), found.size(), found[0], found[1]);
}

const HubFile& require_file(const HubListing& listing, const HubName& name, const std::string& path) {
  if (const auto found = listing.files.find(path); found != listing.files.end()) return found->second;
  std::vector<std::string> names;
  for (const auto& [there, file] : listing.files) names.push_back(there);
  throw InputError("model {}: the repository has no file {}{}", name.text(), path, did_you_mean(path, names));
}

}  // namespace

HubListing parse_listing(std::string_view text, std::string_view where) {
  const Json document = parse_json(text, where);
  const JsonNode json(document, where);
  json.expect_object();
  HubListing listing;
  listing.commit = hex_of(json.at("sha"), 40);
  for (const JsonNode& node : json.at("siblings").elements()) {
    HubFile file = parse_file(node);
    const std::string path = file.path;
    if (!listing.files.emplace(path, std::move(file)).second)
      node.at("rfilename").fail_expected("a name that occurs once");
  }
  return listing;
}

std::vector<HubFile> wanted_files(const HubListing& listing, const HubName& name) {
  std::vector<HubFile> wanted;
  if (!name.file.empty()) {
    for (const std::string& part : gguf_parts(name.file)) wanted.push_back(require_file(listing, name, part));
    return wanted;
  }
  const std::string weights = find_weights(listing, name);  // first: it knows what else a repository may be
  require_file(listing, name, "config.json");
  for (const char* path : kSmallFiles)
    if (const auto found = listing.files.find(path); found != listing.files.end())
      wanted.push_back(found->second);
  wanted.push_back(listing.files.at(weights));
  return wanted;
}

std::vector<HubFile> shard_files(const HubListing& listing, std::string_view index,
                                 const std::string& where) {
  std::vector<HubFile> shards;
  for (const auto& [path, tensors] : parse_shard_index(index, where)) {
    const auto found = listing.files.find(path);
    if (found == listing.files.end())
      throw InputError("{}: names the shard {}, which the repository does not have", where, printable(path));
    shards.push_back(found->second);
  }
  return shards;
}

}  // namespace deeptail
