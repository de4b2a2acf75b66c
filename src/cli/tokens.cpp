#include "cli/tokens.h"

#include <filesystem>

#include "core/screen_text.h"
#include "core/sha256.h"

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
    throw InputError("{}: config.json names no tokenizer_file, so there are only token ids", folder);
  return std::move(*tokenizer);
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
