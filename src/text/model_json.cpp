#include <fmt/format.h>

#include "deeptail/core.h"
#include "text/spec.h"

namespace deeptail {

namespace {

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
  refuse_unless_empty(model, "continuing_subword_prefix");
  refuse_unless_empty(model, "end_of_word_suffix");
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
}

// "a b" or ["a", "b"].
std::pair<std::string_view, std::string_view> parts_of(const JsonNode& merges, std::size_t index) {
  const Json& value = merges.value()[index];
  if (value.is_string()) {
    const std::string_view text = value.get_ref<const std::string&>();
    if (const auto parts = merge_parts(text)) return *parts;
  } else if (value.is_array() && value.size() == 2 && value[0].is_string() && value[1].is_string()) {
    return {value[0].get_ref<const std::string&>(), value[1].get_ref<const std::string&>()};
  }
  merges.element(index).fail_expected("two tokens, as \"a b\" or [\"a\", \"b\"]");
}

void read_merges(const JsonNode& node, ModelSpec& model) {
  const VocabIds ids = ids_of(model);
  const std::size_t n = node.array_size();
  model.merges.reserve(n);
  for (std::size_t i = 0; i < n; ++i) {
    const auto [left, right] = parts_of(node, i);
    model.merges.push_back(merge_of(left, right, ids, [&] { return node.element(i).where(); }));
  }
}

AddedToken read_added_token(const JsonNode& node) {
  AddedToken token;
  token.id = node.at("id").token_id(kMaxTokenIds);
  token.content = node.at("content").text();
  const auto flag = [&](const char* key, bool otherwise) {
    return node.has(key) ? node.at(key).boolean() : otherwise;
  };
  token.special = flag("special", false);
  token.normalized = flag("normalized", !token.special);
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
  const auto flag = [&](const char* key) { return node.has(key) && node.at(key).boolean(); };
  model.ignore_merges = flag("ignore_merges");
  model.byte_fallback = flag("byte_fallback");
  model.fuse_unk = flag("fuse_unk");
  if (node.has("unk_token")) model.unk_token = node.at("unk_token").text();
  read_vocab(node.at("vocab"), model);
  read_merges(node.at("merges"), model);
  return model;
}

std::vector<AddedToken> read_added_tokens(const JsonNode& root, const ModelSpec& model) {
  std::vector<AddedToken> added;
  if (!root.has("added_tokens")) return added;
  const JsonNode list = root.at("added_tokens");
  const VocabIds ids = ids_of(model);
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
  return added;
}

}  // namespace deeptail
