#include "cli/tokens.h"

#include <charconv>
#include <filesystem>

#include "core/screen_text.h"
#include "core/sha256.h"
#include "core/tell.h"

namespace deeptail::cli {

namespace fs = std::filesystem;

std::optional<NamedTokenizer> find_tokenizer(const std::string& sha256) {
  if (sha256.empty()) return std::nullopt;
  for (const std::string& folder : list_models()) {
    try {
      const ModelConfig config = read_config(folder);
      if (config.tokenizer_file.empty()) continue;
      if (sha256_of_file((fs::path(folder) / config.tokenizer_file).string()) != sha256) continue;
      return tokenizer_of(config, folder);
    } catch (const InputError&) {  // a broken model among others must not keep us from looking on
    }
  }
  return std::nullopt;
}

NamedTokenizer require_tokenizer(const std::string& model) {
  const std::string folder = find_model(model);
  auto tokenizer = tokenizer_of(read_config(folder), folder);
  if (!tokenizer)
    throw InputError("{}: {}, so there are only token ids", folder,
                     fs::is_directory(folder) ? "config.json names no tokenizer_file" : "holds no tokenizer");
  return std::move(*tokenizer);
}

NamedTokenizer require_any_tokenizer(const std::string& model_or_file) {
  const fs::path path(model_or_file);
  std::error_code ignored;
  if (path.extension() == ".json" && fs::is_regular_file(path, ignored)) return load_tokenizer(model_or_file);
  if (const fs::path inside = path / "tokenizer.json";
      fs::is_regular_file(inside, ignored) && !fs::exists(path / "config.json", ignored))
    return load_tokenizer(inside.string());
  return require_tokenizer(model_or_file);
}

Bos parse_bos(const std::string& text) {
  if (text == "auto") return {};
  if (text == "none") return {.kind = Bos::Kind::none};
  Bos bos{.kind = Bos::Kind::token};
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), bos.id);
  if (text.empty() || error != std::errc() || stop != text.data() + text.size() || bos.id < 0)
    throw InputError("--bos: expected auto, none or a token's id, found \"{}\"", screen_text(text));
  return bos;
}

std::vector<TokenId> encode_input(const Tokenizer& tokenizer, std::string_view text, const Bos& bos) {
  std::vector<TokenId> ids = tokenizer.encode_input(text, bos);
  if (bos.kind == Bos::Kind::automatic && tokenizer.bos().size() == 1 && ids.size() > 1 && ids[0] == ids[1])
    tell(
        stderr,
        "deeptail: the text begins with {}, and the tokenizer puts another before it; --bos none: only one\n",
        quoted_text(tokenizer.bytes_of(ids[0])));
  return ids;
}

std::string shown(const std::optional<NamedTokenizer>& tokenizer, TokenId id) {
  if (!tokenizer) return "";
  try {
    return quoted_text(tokenizer->tokenizer.bytes_of(id));
  } catch (const InputError&) {
    return "(no token)";
  }
}

std::string shown_tokens(const std::optional<NamedTokenizer>& tokenizer, std::span<const TokenId> ids) {
  std::vector<std::string> names;
  for (const TokenId id : ids)
    names.push_back(fmt::format("{}{}{}", id, tokenizer ? " " : "", shown(tokenizer, id)));
  return fmt::format("{}", fmt::join(names, ", "));
}

std::string text_of_token(const Tokenizer& tokenizer, TokenId id) {
  try {
    return tokenizer.bytes_of(id);
  } catch (const InputError&) {
    return "";
  }
}

}  // namespace deeptail::cli
