#include "hub/tokenizer_repo.h"

#include <filesystem>

#include "core/json.h"
#include "hub/cache.h"
#include "hub/repo_name.h"

namespace deeptail {

namespace fs = std::filesystem;

std::optional<HubName> tokenizer_named_in(std::string_view config_json, const std::string& where) {
  const Json config = parse_json(config_json, where);
  if (!config.is_object()) return std::nullopt;
  const auto name = config.find("tokenizer_name");
  if (name == config.end() || !name->is_string() || !is_repo_name(name->get_ref<const std::string&>()))
    return std::nullopt;
  return HubName{.repo = name->get<std::string>(), .file = "tokenizer.json"};
}

std::optional<std::string> hub_tokenizer_of(const std::string& folder) {
  if (!hub_folder_name(folder)) return std::nullopt;
  const InputFile config((fs::path(folder) / "config.json").string());
  const auto name = tokenizer_named_in(config.text(), config.path());
  if (!name) return std::nullopt;
  // FOLDER is CACHE/models--ORG--NAME/snapshots/COMMIT
  const RepoCache cache((fs::absolute(folder).lexically_normal() / "../../..").lexically_normal(),
                        name->repo);
  const auto commit = cache.commit_of(name->revision);
  if (!commit || !missing_part(cache.snapshot(*commit), name->file).empty()) return std::nullopt;
  return (cache.snapshot(*commit) / name->file).string();
}

}  // namespace deeptail
