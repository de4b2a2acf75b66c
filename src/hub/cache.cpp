#include "hub/cache.h"

#include <algorithm>
#include <vector>

#include "core/block_hash.h"
#include "core/json.h"
#include "deeptail/hub.h"
#include "hub/aliases.h"
#include "hub/gguf_parts.h"
#include "hub/settings.h"
#include "tensors/sharded.h"

namespace deeptail {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t kCommitDigits = 40, kFewestDigits = 4;
constexpr std::string_view kHexDigits = "0123456789abcdef";

std::string folder_name(std::string_view repo) {
  std::string name = "models--";
  for (const char c : repo) name += c == '/' ? "--" : std::string(1, c);
  return name;
}

bool is_short_commit(std::string_view text) {
  return text.size() >= kFewestDigits && text.size() < kCommitDigits &&
         text.find_first_not_of(kHexDigits) == text.npos;
}

std::vector<std::string> commits_that_begin(const fs::path& snapshots, const std::string& digits) {
  std::vector<std::string> found;
  std::error_code error;
  for (fs::directory_iterator entry(snapshots, error), end; !error && entry != end; entry.increment(error))
    if (const std::string name = entry->path().filename().string();
        name.starts_with(digits) && is_hex(name, kCommitDigits))
      found.push_back(name);
  std::sort(found.begin(), found.end());
  return found;
}

bool has_file(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error);
}

std::string missing_shard(const fs::path& snapshot, const fs::path& index) {
  for (const auto& [shard, tensors] : parse_shard_index(InputFile(index.string()).text(), index.string()))
    if (!has_file(snapshot / shard)) return shard;
  return "";
}

bool has_torch_file(const fs::path& snapshot) {
  std::error_code error;
  for (fs::directory_iterator entry(snapshot, error), end; !error && entry != end; entry.increment(error))
    if (const auto ending = entry->path().extension();
        (ending == ".pth" || ending == ".pt") && has_file(*entry))
      return true;
  return false;
}

}  // namespace

std::string parse_ref(std::string_view text, std::string_view where) {
  std::string commit(text.substr(0, text.find_last_not_of(" \t\r\n") + 1));
  if (!is_hex(commit, kCommitDigits))
    throw InputError("{}: expected a commit of 40 hex digits, found '{}'", where, printable(commit));
  return commit;
}

RepoCache::RepoCache(const fs::path& root, std::string_view repo)
    : root_(root), folder_(root / folder_name(repo)) {}

fs::path RepoCache::lock() const { return root_ / ".locks" / folder_.filename() / "deeptail.lock"; }

std::optional<std::string> RepoCache::commit_of(const std::string& revision) const {
  std::error_code error;
  if (const fs::path file = ref(revision); fs::is_regular_file(file, error))
    return parse_ref(InputFile(file.string()).text(), file.string());
  if (is_hex(revision, kCommitDigits))
    return fs::is_directory(snapshot(revision), error) ? std::optional(revision) : std::nullopt;
  if (!is_short_commit(revision)) return std::nullopt;
  const auto found = commits_that_begin(folder_ / "snapshots", revision);
  if (found.size() > 1)
    throw InputError("{}: {} commits begin with {}, such as {} and {}; give more digits",
                     (folder_ / "snapshots").string(), found.size(), revision, found[0], found[1]);
  return found.empty() ? std::nullopt : std::optional(found[0]);
}

bool is_commit_itself(std::string_view revision, std::string_view commit) {
  return revision.size() >= kFewestDigits && commit.starts_with(revision);
}

std::string missing_part(const fs::path& snapshot, const std::string& file) {
  if (!file.empty()) {
    for (const std::string& part : gguf_parts(file))
      if (!has_file(snapshot / part)) return part;
    return "";
  }
  if (!has_file(snapshot / "config.json")) return "config.json";
  for (const char* whole : {"model.safetensors", "pytorch_model.bin"}) {
    if (has_file(snapshot / whole)) return "";
    const fs::path index = snapshot / (std::string(whole) + ".index.json");
    if (has_file(index)) return missing_shard(snapshot, index);
  }
  return has_torch_file(snapshot) ? "" : "the weights";
}

std::optional<std::string> hub_folder_name(const std::string& folder) {
  fs::path path = fs::path(folder).lexically_normal();
  if (!path.has_filename()) path = path.parent_path();  // a slash at the end
  const std::string commit = path.filename().string(), parent = path.parent_path().filename().string(),
                    repo = path.parent_path().parent_path().filename().string();
  if (!is_hex(commit, kCommitDigits) || parent != "snapshots" || !repo.starts_with("models--"))
    return std::nullopt;
  for (const auto& alias : kHubAliases)
    if (repo == folder_name(alias.repo)) return std::string(alias.name);
  return fmt::format("{}@{}", repo.substr(repo.rfind("--") + 2), commit.substr(0, 7));
}

HubModel find_in_hub_cache(const HubName& name) {
  const fs::path root = hub_cache_folder(process_environment);
  const RepoCache cache(root, name.repo);
  const auto commit = cache.commit_of(name.revision);
  if (!commit)
    throw InputError("model {}: not in the HuggingFace cache {}; fetch it first", name.text(), root.string())
        .with_hint(Hint::kFetch);
  const fs::path snapshot = cache.snapshot(*commit);
  if (const std::string part = missing_part(snapshot, name.file); !part.empty())
    throw InputError("model {}: the HuggingFace cache has commit {} without {}: {}; fetch the rest first",
                     name.text(), commit->substr(0, 12), printable(part), snapshot.string())
        .with_hint(Hint::kFetch);
  return {*commit, (name.file.empty() ? snapshot : snapshot / name.file).string()};
}

}  // namespace deeptail
