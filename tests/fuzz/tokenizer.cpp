// Bytes up to the first NUL: a tokenizer.json. The rest: text for it, and for fixed tokenizers that must give
// it back.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "core/json.h"
#include "deeptail/core.h"
#include "deeptail/text.h"
#include "text/byte_alphabet.h"
#include "text/byte_token.h"
#include "text/unicode.h"
#include "text/vocabulary.h"

namespace {

using namespace deeptail;

Tokenizer make_fixed() {
  Json vocab = Json::object(), merges = Json::array();
  for (int byte = 0; byte < 256; ++byte) vocab[alphabet_character(static_cast<unsigned char>(byte))] = byte;
  const auto merge = [&](const std::string& left, const std::string& right) {
    vocab[left + right] = vocab.size();
    merges.push_back({left, right});
  };
  merge("t", "h");
  merge("th", "e");
  merge("a", "a");
  merge("aa", "aa");
  merge("\u00c3", "\u00a9");
  const Json document = {
      {"added_tokens", {{{"id", 300}, {"content", "<s>"}, {"special", true}}}},
      {"pre_tokenizer", {{"type", "ByteLevel"}, {"add_prefix_space", false}}},
      {"model", {{"type", "BPE"}, {"vocab", vocab}, {"merges", merges}}},
  };
  return Tokenizer::parse(json_text(document), "fixed");
}

// Pieces, and bytes for other characters.
Tokenizer make_sentencepiece() {
  Vocabulary v;
  for (int byte = 0; byte < 256; ++byte) {
    v.tokens.push_back(byte_token(static_cast<unsigned char>(byte)));
    v.types.push_back(TokenType::byte);
  }
  for (const char* piece :
       {"\u2581", "t", "h", "e", "a", "th", "he", "the", "\u2581the", "aa", "aaaa", "\u00e9"})
    v.tokens.emplace_back(piece);
  v.types.resize(v.tokens.size(), TokenType::normal);
  for (std::size_t i = 0; i < v.tokens.size(); ++i) v.scores.push_back(-static_cast<float>(i % 7));
  return Tokenizer::make(spec_of(v, "fixed"), "fixed");
}

void use(const Tokenizer& tokenizer, std::string_view text) {
  const auto ids = tokenizer.encode(text);
  for (const TokenId id : ids)
    if (id < 0 || static_cast<std::size_t>(id) >= tokenizer.vocab_size()) std::abort();
  tokenizer.decode(ids);
  if (tokenizer.encode_input(text).size() != ids.size() + tokenizer.bos().size()) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Tokenizer fixed = make_fixed();
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const std::size_t end = std::min(input.find('\0'), size);
  const std::string_view text = input.substr(std::min(end + 1, size));
  try {
    use(Tokenizer::parse(input.substr(0, end), "fuzz"), text);
  } catch (const InputError&) {
  }
  if (fixed.decode(fixed.encode(input)) != input) std::abort();
  static const Tokenizer pieces = make_sentencepiece();
  const std::string_view valid = input.substr(0, valid_utf8_prefix(input));
  if (valid.find("\u2581") == std::string_view::npos && pieces.decode(pieces.encode(valid)) != valid)
    std::abort();
  return 0;
}
