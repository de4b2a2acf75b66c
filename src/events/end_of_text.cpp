#include <algorithm>
#include <filesystem>

#include "core/json.h"
#include "events/text_events.h"
#include "tensors/gguf.h"

namespace deeptail {

namespace {

// An id or several, of a file that may not be there.
std::vector<TokenId> ids_in_file(const std::filesystem::path& path, std::size_t d_vocab) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return {};
  const InputFile file(path.string());
  const Json json = parse_json(file.text(), file.path());
  if (!json.is_object() || !json.contains("eos_token_id")) return {};
  const Json& found = json["eos_token_id"];
  std::vector<TokenId> ids;
  for (const Json& id : found.is_array() ? found : Json::array({found}))
    if (id.is_number_unsigned() && id.get<std::uint64_t>() < d_vocab) ids.push_back(id.get<TokenId>());
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  return ids;
}

}  // namespace

std::vector<TokenId> end_of_text_tokens(const LoadedModel& model) {
  const std::size_t d_vocab = model.config().d_vocab;
  if (is_gguf_file(model.folder)) {
    constexpr std::string_view kEos = "tokenizer.ggml.eos_token_id";
    const GgufMetadata keys = read_gguf(model.folder).metadata;
    if (!keys.has(kEos)) return {};
    return {static_cast<TokenId>(keys.count(kEos, 0, d_vocab - 1))};
  }
  const std::filesystem::path folder(model.folder);
  std::vector<TokenId> ids = ids_in_file(folder / "generation_config.json", d_vocab);
  return ids.empty() ? ids_in_file(folder / "config.json", d_vocab) : ids;
}

}  // namespace deeptail
