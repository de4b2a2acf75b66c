#include <fmt/format.h>

#include "deeptail/core.h"
#include "text/spec.h"

namespace deeptail {

namespace {

// Ids may leave gaps, but not so large that a small file asks for a large table.
constexpr std::size_t kIdsPerToken = 16;
constexpr std::size_t kFreeIds = 1024;
constexpr std::size_t kMaxTokenIds = std::size_t{1} << 31;
constexpr std::size_t kMaxAddedToken = 1024;  // bytes

void refuse_unless_empty(const JsonNode& model, const char* key) {
  if (!model.has(key)) return;
  if (!model.at(key).text().empty())
    throw InputError("{}: found {}; only null or \"\" is supported", model.at(key).where(),
                     model.at(key).found());
}

void refuse_unsupported_options(const JsonNode& model) {
  if (model.has("type") && model.at("type").text() != "BPE")
    throw InputError("{}: found {}; only \"BPE\" is supported", model.at("type").where(),
                     model.at("type").found());
  if (model.has("dropout"))
    throw InputError("{}: found {}; only null is supported, as dropout makes encoding random",
                     model.at("dropout").where(), model.at("dropout").found());
  if (model.has("byte_fallback") && model.at("byte_fallback").boolean())
    throw InputError("{}: found true; only false is supported", model.at("byte_fallback").where());
  refuse_unless_empty(model, "continuing_subword_prefix");
  refuse_unless_empty(model, "end_of_word_suffix");
}

using VocabIds = std::unordered_map<std::string_view, TokenId>;

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

void read_vocab(const JsonNode& node, ModelSpec& model) {
  node.expect_object();
  model.vocab.reserve(node.value().size());
  const std::string place = node.where();
  for (const auto& [text, id] : node.value().items()) {
    if (text.empty()) throw InputError("{}: the empty text is no token", place);
    model.vocab.emplace_back(text, JsonNode(id, place, text).token_id(kMaxTokenIds));
  }
  if (model.vocab.empty()) throw InputError("{}: no tokens; expected at least one", node.where());
  check_ids(model, {}, node.where());
}

// "a b" or ["a", "b"].
std::pair<std::string_view, std::string_view> merge_parts(const JsonNode& merges, std::size_t index) {
  const Json& value = merges.value()[index];
  if (value.is_string()) {
    const std::string_view text = value.get_ref<const std::string&>();
    const std::size_t space = text.find(' ');
    if (space != std::string_view::npos && text.find(' ', space + 1) == std::string_view::npos)
      return {text.substr(0, space), text.substr(space + 1)};
  } else if (value.is_array() && value.size() == 2 && value[0].is_string() && value[1].is_string()) {
    return {value[0].get_ref<const std::string&>(), value[1].get_ref<const std::string&>()};
  }
  merges.element(index).fail_expected("two tokens, as \"a b\" or [\"a\", \"b\"]");
}

void read_merges(const JsonNode& node, const VocabIds& ids, ModelSpec& model) {
  const std::size_t n = node.array_size();
  model.merges.reserve(n);
  std::string merged;
  for (std::size_t i = 0; i < n; ++i) {
    const auto [left, right] = merge_parts(node, i);
    merged.assign(left).append(right);
    const auto id_of = [&](std::string_view token, std::string_view role) {
      const auto found = ids.find(token);
      if (found == ids.end())
        throw InputError("{}: {} \"{}\" is not in model.vocab", node.element(i).where(), role,
                         printable(token));
      return found->second;
    };
    model.merges.push_back(
        {id_of(left, "its left part"), id_of(right, "its right part"), id_of(merged, "its result")});
  }
}

AddedToken read_added_token(const JsonNode& node) {
  AddedToken token;
  token.id = node.at("id").token_id(kMaxTokenIds);
  token.content = node.at("content").text();
  const auto flag = [&](const char* key, bool otherwise) {
    return node.has(key) ? node.at(key).boolean() : otherwise;
  };
  token.normalized = flag("normalized", !flag("special", false));
  token.lstrip = flag("lstrip", false);
  token.rstrip = flag("rstrip", false);
  token.single_word = flag("single_word", false);
  if (token.content.empty() || token.content.size() > kMaxAddedToken)
    throw InputError("{}: the content has {} bytes; expected 1 to {}", node.where(), token.content.size(),
                     kMaxAddedToken);
  return token;
}

}  // namespace

ModelSpec read_model(const JsonNode& node) {
  node.expect_object();
  refuse_unsupported_options(node);
  ModelSpec model;
  model.ignore_merges = node.has("ignore_merges") && node.at("ignore_merges").boolean();
  model.has_unk_token = node.has("unk_token");
  read_vocab(node.at("vocab"), model);
  VocabIds ids;
  ids.reserve(model.vocab.size());
  for (const auto& [text, id] : model.vocab) ids.emplace(text, id);
  read_merges(node.at("merges"), ids, model);
  return model;
}

std::vector<AddedToken> read_added_tokens(const JsonNode& root, const ModelSpec& model) {
  std::vector<AddedToken> added;
  if (!root.has("added_tokens")) return added;
  const JsonNode list = root.at("added_tokens");
  VocabIds ids;
  for (const auto& [text, id] : model.vocab) ids.emplace(text, id);
  std::unordered_map<std::string, std::size_t> seen;
  const std::size_t n = list.array_size();
  for (std::size_t i = 0; i < n; ++i) {
    AddedToken token = read_added_token(list.element(i));
    if (const auto [first, is_new] = seen.try_emplace(token.content, i); !is_new)
      throw InputError("{}: \"{}\" was already given by added_tokens[{}]", list.element(i).where(),
                       printable(token.content), first->second);
    if (const auto found = ids.find(token.content); found != ids.end() && found->second != token.id)
      throw InputError("{}: \"{}\" has id {} here and id {} in model.vocab", list.element(i).where(),
                       printable(token.content), token.id, found->second);
    added.push_back(std::move(token));
  }
  check_ids(model, added, list.where());
  return added;
}

}  // namespace deeptail
