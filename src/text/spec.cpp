#include "text/spec.h"

#include <unordered_map>

#include "core/json.h"
#include "deeptail/core.h"

namespace deeptail {

namespace {
// Ids may leave gaps, but not so large that a small file asks for a large table.
constexpr std::size_t kIdsPerToken = 16;
constexpr std::size_t kFreeIds = 1024;
}  // namespace

VocabIds ids_of(const ModelSpec& model) {
  VocabIds ids;
  ids.reserve(model.vocab.size());
  for (const auto& [text, id] : model.vocab) ids.emplace(text, id);
  return ids;
}

std::optional<std::pair<std::string_view, std::string_view>> merge_parts(std::string_view text) {
  const std::size_t space = text.find(' ');
  if (space == std::string_view::npos || text.find(' ', space + 1) != std::string_view::npos)
    return std::nullopt;
  return std::pair(text.substr(0, space), text.substr(space + 1));
}

Merge merge_of(std::string_view left, std::string_view right, const VocabIds& ids, const Where& where) {
  const auto id_of = [&](std::string_view token, std::string_view role) {
    const auto found = ids.find(token);
    if (found == ids.end())
      throw InputError("{}: {} \"{}\" is not in the vocabulary", where(), role, printable(token));
    return found->second;
  };
  const std::string merged = std::string(left).append(right);
  return {id_of(left, "its left part"), id_of(right, "its right part"), id_of(merged, "its result")};
}

void check_ids(const ModelSpec& model, const std::vector<AddedToken>& added, const std::string& where) {
  const std::size_t limit = kIdsPerToken * (model.vocab.size() + added.size()) + kFreeIds;
  std::unordered_map<TokenId, std::string_view> owners;
  const auto check = [&](std::string_view text, TokenId id) {
    if (static_cast<std::size_t>(id) >= limit)
      throw InputError("{}: token \"{}\" has id {}, too far beyond the {} tokens of the file", where,
                       printable(text), id, model.vocab.size() + added.size());
    const auto [owner, is_new] = owners.try_emplace(id, text);
    if (!is_new && owner->second != text)
      throw InputError("{}: tokens \"{}\" and \"{}\" have the same id {}; ids must be unique", where,
                       printable(owner->second), printable(text), id);
  };
  for (const auto& [text, id] : model.vocab) check(text, id);
  for (const AddedToken& token : added) check(token.content, token.id);
}

}  // namespace deeptail
