// Text to tokens and back: byte-level and SentencePiece BPE as HuggingFace's tokenizer.json describes them
// (docs/tokenizers.md lists the parts of the file that are read, and what is refused).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "deeptail/core.h"

namespace [[gnu::visibility("default")]] deeptail {

struct TokenizerSpec;

// What goes before a text that becomes an input of a model.
struct Bos {
  enum class Kind { automatic, none, token };
  Kind kind = Kind::automatic;  // what the tokenizer's files say
  TokenId id = 0;               // of Kind::token
};

// Immutable once loaded: every member is const and may be called from any number of threads. A copy is the same one.
class Tokenizer {
 public:
  // Reads a tokenizer.json and, where it has no template for special tokens, add_bos_token of the
  // tokenizer_config.json beside it. Throws InputError for malformed files and for parts that are not supported.
  static Tokenizer load(const std::string& path);
  // config: the text of tokenizer_config.json, if there is one.
  static Tokenizer parse(std::string_view json, std::string_view where, std::string_view config = {});
  // For readers of other files inside the library.
  static Tokenizer make(const TokenizerSpec& spec, std::string_view where);

  // The ids HuggingFace's library gives with add_special_tokens=False: added tokens in the text are
  // recognised, none is put around it. Any bytes: the text is cut into its longest runs of valid UTF-8, each
  // encoded as a text of its own, and the bytes between them, each encoded as the token of that byte.
  // decode(encode(x)) == x for every x, unless the file asks for text to change: a normalizer, a prefix
  // that the decoder does not take away, a Split that removes, unknown characters, added tokens that strip
  // spaces. Throws InputError for what has no token, and for a pattern that takes too long on this text.
  std::vector<TokenId> encode(std::string_view text) const;

  // The same after the special tokens before a text; none is put after it.
  std::vector<TokenId> encode_input(std::string_view text, const Bos& bos = {}) const;
  const std::vector<TokenId>& bos() const;  // those of Bos::Kind::automatic

  // The text of the tokens, as the file's decoder makes it of their bytes; an added token stands for its
  // content. Throws InputError for an id without a token.
  std::string decode(std::span<const TokenId> ids) const;

  // The same for showing: an id without a token, as a model with more ids than tokens has them, is <|id 57|>.
  std::string decode_all(std::span<const TokenId> ids) const;

  std::size_t vocab_size() const;                              // largest id + 1
  std::optional<TokenId> id_of(std::string_view token) const;  // exact bytes of one token, such as " the"
  std::string bytes_of(TokenId id) const;                      // the bytes that one token stands for
  bool has(TokenId id) const;                                  // ids may leave gaps
  bool is_special(TokenId id) const;  // an added token that is no text, such as <s>; others: false

  // Whether the text of tokens is that of each, one after another, but for the first of a text: then decode({id})
  // is what it becomes there, and bytes_of(id) what it is later.
  bool decodes_by_token() const;

 private:
  struct Impl;
  explicit Tokenizer(std::shared_ptr<const Impl> impl);
  std::shared_ptr<const Impl> impl_;
};

}  // namespace deeptail
