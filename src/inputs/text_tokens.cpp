#include "inputs/text_tokens.h"

#include <filesystem>

#include "core/json.h"
#include "core/sha256.h"

namespace deeptail {

void TextTokens::load() {
  if (tokenizer_) return;
  if (name_.empty())
    throw InputError(
        "{}: tokens as text need the key \"tokenizer\": the path of a tokenizer.json, relative to this file",
        where_);
  if (folder_.empty()) throw InputError("{}: key \"tokenizer\": only a file can name one", where_);
  const InputFile file((std::filesystem::path(folder_) / name_).lexically_normal().string());
  tokenizer_ = Tokenizer::parse(file.text(), file.path());
  sha256_ = sha256_hex(file.bytes());
}

TokenId TextTokens::id_of(std::string_view text, std::string_view place) {
  load();
  if (const auto id = tokenizer_->id_of(text)) return *id;
  std::string why = "it is empty";
  try {
    if (!text.empty()) why = fmt::format("it is {} tokens", tokenizer_->encode(text).size());
  } catch (const InputError&) {
    why = "it cannot be written with it";
  }
  throw InputError("{}: \"{}\" is not one token of {}: {}", place, printable(text), printable(name_), why);
}

}  // namespace deeptail
