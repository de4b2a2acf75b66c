// tokenizer.json, and the tokenizer_config.json beside it.
#include <algorithm>
#include <filesystem>

#include "deeptail/core.h"
#include "text/spec.h"

namespace deeptail {

namespace {

// Combinations whose parts are understood one by one, but not together.
void check_together(const TokenizerSpec& spec, std::string_view where) {
  const auto& steps = spec.pre_tokenizer.steps;
  // What counts as first then depends on how the library keeps account of removed characters.
  if (!spec.normalizer.keeps_places() &&
      std::any_of(steps.begin(), steps.end(), [](const auto& step) { return step.prefix_at_start_only; }))
    throw InputError(
        "{}: a Metaspace with prepend_scheme \"first\" is supported only with the normalizers NFC and "
        "Replace of "
        "one character by another",
        where);
  if (!spec.model.byte_fallback || !spec.pre_tokenizer.bytes) return;
  throw InputError("{}: byte_fallback true and a ByteLevel pre-tokenizer are not supported together", where);
}

TokenId id_of_entry(const TokenizerSpec& spec, const std::string& text, const std::string& where) {
  for (const AddedToken& token : spec.added)
    if (token.content == text) return token.id;
  for (const auto& [entry, id] : spec.model.vocab)
    if (entry == text) return id;
  throw InputError("{}: key \"bos_token\": \"{}\" is no token of the tokenizer", where, printable(text));
}

}  // namespace

Tokenizer Tokenizer::parse(std::string_view json, std::string_view where, std::string_view config) {
  const Json document = parse_json(json, where);
  const JsonNode root(document, where);
  root.expect_object();
  if (root.has("version") && root.at("version").text() != "1.0") root.at("version").fail_expected("\"1.0\"");
  TokenizerSpec spec;
  spec.model = read_model(root.at("model"));
  spec.added = read_added_tokens(root, spec.model);
  spec.normalizer = read_normalizer(root);
  spec.pre_tokenizer = read_pre_tokenizer(root);
  spec.decoder = read_decoder(root, spec.pre_tokenizer);
  check_together(spec, where);
  const auto bos = read_template(root);
  spec.bos = bos.value_or(std::vector<TokenId>());
  if (bos || config.empty()) return make(spec, where);

  const std::string config_where = fmt::format("{}: tokenizer_config.json", where);
  const Json settings = parse_json(config, config_where);
  const std::string token = read_config_bos(JsonNode(settings, config_where));
  if (!token.empty()) spec.bos = {id_of_entry(spec, token, config_where)};
  return make(spec, where);
}

Tokenizer Tokenizer::load(const std::string& path) {
  const InputFile file(path);
  const auto beside = std::filesystem::path(path).parent_path() / "tokenizer_config.json";
  if (!std::filesystem::exists(beside)) return parse(file.text(), path);
  const InputFile config(beside.string());
  return parse(file.text(), path, config.text());
}

}  // namespace deeptail
