#include "inputs/gguf_tokenizer.h"

#include <algorithm>
#include <filesystem>

#include "core/json.h"
#include "core/sha256.h"

namespace deeptail {

namespace {

using Kind = Vocabulary::Kind;

constexpr std::string_view kModel = "tokenizer.ggml.model", kTypes = "tokenizer.ggml.token_type",
                           kPre = "tokenizer.ggml.pre", kBos = "tokenizer.ggml.bos_token_id",
                           kWholeFile = "tokenizer.huggingface.json";

Kind read_kind(const GgufMetadata& keys) {
  const std::string& model = keys.text(kModel);
  if (model == "llama") return Kind::sentencepiece;
  if (model == "gpt2") return Kind::byte_level;
  throw InputError(
      "{}: key '{}': tokenizers of the kind \"{}\" are not supported, only \"llama\" and \"gpt2\"",
      keys.where(), kModel, printable(model));
}

std::vector<TokenType> read_types(const GgufMetadata& keys) {
  std::vector<TokenType> types;
  if (!keys.has(kTypes)) return types;
  for (const std::int64_t type : keys.integers(kTypes)) {
    if (type < 0 || type > static_cast<int>(TokenType::byte))
      throw InputError("{}: key '{}': found {}; expected 0 to 6", keys.where(), kTypes, type);
    types.push_back(type == 0 ? TokenType::normal : static_cast<TokenType>(type));  // 0: left open
  }
  return types;
}

// Where a file does not say whether its token before a text is used, its kind does.
std::optional<TokenId> read_bos(const GgufMetadata& keys, const Vocabulary& v) {
  constexpr std::string_view kAdd = "tokenizer.ggml.add_bos_token";
  const bool usual = v.kind == Kind::sentencepiece || v.pre_tokenizer.starts_with("llama");
  if (!(keys.has(kAdd) ? keys.boolean(kAdd) : usual)) return std::nullopt;
  constexpr TokenId kUsualBos = 1;  // of SentencePiece
  if (v.kind == Kind::sentencepiece && !keys.has(kBos)) return kUsualBos;
  return static_cast<TokenId>(keys.count(kBos, 0, std::max<std::size_t>(v.tokens.size(), 1) - 1));
}

// Each list with its length, so that no two vocabularies give the same bytes.
std::string vocabulary_sha256(const Vocabulary& v) {
  Sha256 hash;
  const auto add = [&](std::string_view text) { hash.add(std::as_bytes(std::span(text))); };
  const auto add_list = [&](const std::vector<std::string>& list) {
    add(fmt::format("{}\n", list.size()));
    for (const std::string& text : list) add(fmt::format("{} {}\n", text.size(), text));
  };
  add(fmt::format("deeptail-vocabulary-1\n{}\n{}\n{}\n{}\n", v.kind == Kind::sentencepiece ? "llama" : "gpt2",
                  v.pre_tokenizer, v.add_space_prefix, v.bos.value_or(-1)));
  add_list(v.tokens);
  add_list(v.merges);
  for (const TokenType type : v.types) add(fmt::format("{} ", static_cast<int>(type)));
  hash.add(std::as_bytes(std::span(v.scores)));
  return hash.hex();
}

}  // namespace

std::string tokenizer_beside(const std::string& path) {
  return std::filesystem::path(path).replace_extension(".tokenizer.json").string();
}

Vocabulary gguf_vocabulary(const GgufMetadata& keys) {
  Vocabulary v{.kind = read_kind(keys)};
  v.tokens = keys.texts("tokenizer.ggml.tokens");
  v.types = read_types(keys);
  if (v.kind == Kind::sentencepiece) {
    for (const double score : keys.numbers("tokenizer.ggml.scores"))
      v.scores.push_back(static_cast<float>(score));
    constexpr std::string_view kPrefix = "tokenizer.ggml.add_space_prefix";
    v.add_space_prefix = !keys.has(kPrefix) || keys.boolean(kPrefix);
  } else {
    v.merges = keys.texts("tokenizer.ggml.merges");
    if (!keys.has(kPre))
      throw InputError(
          "{}: key '{}' is missing, so it is not known how text is cut into pieces; put the model's "
          "tokenizer.json beside the file, as {}",
          keys.where(), kPre, tokenizer_beside(keys.where()));
    v.pre_tokenizer = keys.text(kPre);
  }
  v.bos = read_bos(keys, v);
  return v;
}

std::optional<NamedTokenizer> gguf_tokenizer(const GgufMetadata& keys) {
  if (keys.has(kWholeFile)) {
    const std::string& json = keys.text(kWholeFile);
    const std::string where = fmt::format("{}: key '{}'", keys.where(), kWholeFile);
    return NamedTokenizer{Tokenizer::parse(json, where), sha256_hex(json)};
  }
  if (!keys.has(kModel) || keys.text(kModel) == "none" || keys.text(kModel) == "no_vocab")
    return std::nullopt;
  const Vocabulary vocabulary = gguf_vocabulary(keys);
  return NamedTokenizer{Tokenizer::make(spec_of(vocabulary, keys.where()), keys.where()),
                        vocabulary_sha256(vocabulary)};
}

}  // namespace deeptail
