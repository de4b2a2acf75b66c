#include <algorithm>

#include "core/json.h"
#include "deeptail/hub.h"
#include "hub/aliases.h"
#include "hub/repo_name.h"
#include "hub/safe_path.h"

namespace deeptail {

namespace {

constexpr std::string_view kPrefix = "hf:";
constexpr std::string_view kMain = "main";

bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
         c == '.';
}

// The hub's own rules: an organisation's or a repository's name.
bool is_good_part(std::string_view part) {
  const auto at_edge = [](char c) { return c == '-' || c == '.'; };
  return !part.empty() && part.size() <= 96 && std::all_of(part.begin(), part.end(), is_word) &&
         part.find("--") == part.npos && part.find("..") == part.npos && !part.ends_with(".git") &&
         !at_edge(part.front()) && !at_edge(part.back());
}

[[noreturn]] void refuse_name(std::string_view text, std::string_view why) {
  throw InputError("model {}: {}; expected hf:ORG/NAME, hf:ORG/NAME@REVISION or hf:ORG/NAME:FILE.gguf",
                   printable(text), why);
}

}  // namespace

bool is_repo_name(std::string_view repo) {
  const std::size_t slash = repo.find('/');
  if (slash == repo.npos) return is_good_part(repo);
  return is_good_part(repo.substr(0, slash)) && is_good_part(repo.substr(slash + 1));
}

std::string HubName::text() const {
  return fmt::format("{}{}{}{}{}{}", kPrefix, repo, revision == kMain ? "" : "@",
                     revision == kMain ? "" : revision, file.empty() ? "" : ":", file);
}

bool is_hub_name(std::string_view text) { return text.starts_with(kPrefix); }

HubName parse_hub_name(std::string_view text) {
  if (!is_hub_name(text)) refuse_name(text, "does not begin with hf:");
  std::string_view rest = text.substr(kPrefix.size());
  HubName name;
  if (const std::size_t colon = rest.find(':'); colon != rest.npos) {
    name.file = rest.substr(colon + 1);
    if (!is_safe_path(name.file)) refuse_name(text, "the file is not a plain name within the repository");
    rest = rest.substr(0, colon);
  }
  if (const std::size_t at = rest.find('@'); at != rest.npos) {
    name.revision = rest.substr(at + 1);
    if (!is_safe_path(name.revision)) refuse_name(text, "the revision is no branch, tag or commit");
    rest = rest.substr(0, at);
  }
  if (!is_repo_name(rest)) refuse_name(text, "this is not the name of a repository");
  name.repo = rest;
  return name;
}

std::optional<HubName> hub_alias(std::string_view name) {
  for (const auto& alias : kHubAliases)
    if (name == alias.name) return HubName{.repo = std::string(alias.repo)};
  return std::nullopt;
}

}  // namespace deeptail
