// What of the hub lies whole in the user's cache.
#include <algorithm>
#include <filesystem>

#include "deeptail/hub.h"
#include "hub/cache.h"
#include "hub/gguf_parts.h"
#include "hub/settings.h"

namespace deeptail {

namespace {

namespace fs = std::filesystem;

// Entries of a folder, sorted; none where it cannot be read.
std::vector<fs::path> entries_of(const fs::path& folder) {
  std::vector<fs::path> found;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error))
    found.push_back(entry->path());
  std::sort(found.begin(), found.end());
  return found;
}

// "models--ORG--NAME" -> "ORG/NAME"; "" for other folders.
std::string repo_of(const std::string& folder) {
  constexpr std::string_view kBefore = "models--", kBetween = "--";
  if (!folder.starts_with(kBefore)) return "";
  std::string repo = folder.substr(kBefore.size());
  if (const auto at = repo.find(kBetween); at != repo.npos) repo.replace(at, kBetween.size(), "/");
  return repo;
}

// Models of one snapshot: its folder, and every GGUF file in it that is whole; of several parts the first.
void add_models_of(const HubName& name, const fs::path& snapshot, std::vector<std::string>& found) {
  if (missing_part(snapshot, "").empty()) found.push_back(name.text());
  for (const fs::path& file : entries_of(snapshot)) {
    if (file.extension() != ".gguf") continue;
    HubName one = name;
    one.file = file.filename().string();
    if (gguf_parts(one.file).front() == one.file && missing_part(snapshot, one.file).empty())
      found.push_back(one.text());
  }
}

}  // namespace

std::vector<std::string> list_hub_cache() {
  const fs::path root = hub_cache_folder(process_environment);
  std::vector<std::string> found;
  for (const fs::path& folder : entries_of(root)) {
    const std::string repo = repo_of(folder.filename().string());
    if (repo.empty()) continue;
    const RepoCache cache(root, repo);
    for (const fs::path& ref : entries_of(folder / "refs")) try {
        HubName name{.repo = repo, .revision = ref.filename().string()};
        if (const auto commit = cache.commit_of(name.revision))
          add_models_of(name, cache.snapshot(*commit), found);
      } catch (const InputError&) {  // a broken entry hides no other
      }
  }
  return found;
}

}  // namespace deeptail
