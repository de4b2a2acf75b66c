#include "cli/tokens.h"

#include <filesystem>

#include "core/json.h"
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

std::string shown(const std::optional<NamedTokenizer>& tokenizer, TokenId id) {
  if (!tokenizer) return "";
  try {
    return fmt::format("\"{}\"", printable(tokenizer->tokenizer.bytes_of(id)));
  } catch (const InputError&) {
    return "(no token)";
  }
}

}  // namespace deeptail::cli
