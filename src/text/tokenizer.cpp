#include "deeptail/text.h"

#include <algorithm>

#include "deeptail/core.h"
#include "text/byte_alphabet.h"
#include "text/byte_token.h"
#include "text/spec.h"
#include "text/unicode.h"

namespace deeptail {

namespace {

struct Token {
  std::string bytes;
  std::string entry;    // only where the first token of a text is decoded in a way of its own
  bool exists = false;  // ids may leave gaps
  bool special = false;
};

// What bytes stand for: entries of the byte alphabet, or <0x0A> where the model falls back on them.
Symbols::ByteIds byte_ids_of(const TokenizerSpec& spec) {
  Symbols::ByteIds byte_ids;
  byte_ids.fill(Symbols::kNoToken);
  const bool fall_back = spec.model.byte_fallback && !spec.pre_tokenizer.bytes;
  for (const auto& [text, id] : spec.model.vocab) {
    if (spec.pre_tokenizer.bytes) {
      const auto bytes = bytes_from_alphabet(text);
      if (bytes && bytes->size() == 1) byte_ids[static_cast<unsigned char>(bytes->front())] = id;
    } else if (const auto byte = byte_of_token(text); byte && fall_back && text == byte_token(*byte)) {
      byte_ids[*byte] = id;
    }
  }
  return byte_ids;
}

std::unordered_map<char32_t, TokenId> character_ids(const ModelSpec& model) {
  std::unordered_map<char32_t, TokenId> ids;
  for (const auto& [text, id] : model.vocab)
    if (const CodePoint c = code_point_at(text, 0); c.length == text.size()) ids.emplace(c.value, id);
  return ids;
}

Symbols make_symbols(const TokenizerSpec& spec) {
  Symbols::Config config{.byte_ids = byte_ids_of(spec)};
  if (!spec.pre_tokenizer.bytes) config.characters = character_ids(spec.model);
  config.fuse_unknown = spec.model.fuse_unk;
  if (!spec.model.unk_token) return Symbols(std::move(config));
  for (const auto& [text, id] : spec.model.vocab)
    if (text == *spec.model.unk_token) config.unknown = id;
  return Symbols(std::move(config));
}

// Entries with characters outside the byte alphabet are never reached by merging bytes; they stand for their
// own text.
Bpe make_bpe(const TokenizerSpec& spec) {
  Bpe::Config config{.symbols = make_symbols(spec), .merges = spec.model.merges, .ranks = spec.model.ranks};
  if (spec.model.ignore_merges)
    for (const auto& [text, id] : spec.model.vocab) {
      const auto word = spec.pre_tokenizer.bytes ? bytes_from_alphabet(text) : text;
      if (word) config.whole_words.emplace(*word, id);
    }
  return Bpe(std::move(config));
}

// What an added token is found as, and stands for.
std::string text_in(const TokenizerSpec& spec, const AddedToken& token) {
  return token.normalized ? spec.normalizer.apply(token.content) : token.content;
}

AddedTokenFinder make_finder(const TokenizerSpec& spec, bool normalized) {
  std::vector<AddedToken> chosen;
  std::vector<std::string> patterns;
  for (const AddedToken& token : spec.added) {
    if (token.normalized != normalized) continue;
    std::string pattern = text_in(spec, token);
    if (pattern.empty()) continue;  // no text is ever that
    chosen.push_back(token);
    patterns.push_back(std::move(pattern));
  }
  return {std::move(chosen), patterns};
}

}  // namespace

struct Tokenizer::Impl {
  explicit Impl(const TokenizerSpec& spec)
      : bpe(make_bpe(spec)),
        normalizer(spec.normalizer),
        pre_tokenizer(spec.pre_tokenizer),
        decoder(spec.decoder),
        raw_finder(make_finder(spec, false)),
        normalized_finder(make_finder(spec, true)),
        bos(spec.bos) {
    TokenId largest = 0;
    for (const auto& entry : spec.model.vocab) largest = std::max(largest, entry.second);
    for (const AddedToken& token : spec.added) largest = std::max(largest, token.id);
    tokens.resize(static_cast<std::size_t>(largest) + 1);

    // Of tokens that stand for the same bytes, id_of gives the one that encode would give.
    for (const AddedToken& token : spec.added) {
      add(text_in(spec, token), token.id, TextDecoder::Kind::added);
      ids.try_emplace(token.content, token.id);
      tokens[static_cast<std::size_t>(token.id)].special = token.special;
    }
    const auto comes_later = [&](const std::string& entry) {
      return pre_tokenizer.bytes ? !bytes_from_alphabet(entry) : byte_of_token(entry).has_value();
    };
    for (const bool later : {false, true})
      for (const auto& [entry, id] : spec.model.vocab)
        if (comes_later(entry) == later) add(entry, id, TextDecoder::Kind::entry);
  }

  void add(const std::string& entry, TokenId id, TextDecoder::Kind kind) {
    Token& token = tokens[static_cast<std::size_t>(id)];
    if (token.exists) return;
    token = {.bytes = decoder.token(entry, kind, false),
             .entry = decoder.first_differs() ? entry : "",
             .exists = true};
    ids.try_emplace(token.bytes, id);
  }

  // Null for an id without a token.
  const Token* find(TokenId id) const {
    if (id < 0 || static_cast<std::size_t>(id) >= tokens.size()) return nullptr;
    const Token& token = tokens[static_cast<std::size_t>(id)];
    return token.exists ? &token : nullptr;
  }
  const Token& token(TokenId id) const {
    if (const Token* found = find(id)) return *found;
    throw InputError("there is no token {}; the tokenizer's ids go from 0 to {}", id, tokens.size() - 1);
  }

  // What the token stands for at the beginning of a text, or later.
  std::string text_of(const Token& token, bool first) const {
    return first && decoder.first_differs() ? decoder.token(token.entry, TextDecoder::Kind::entry, true)
                                            : token.bytes;
  }

  Bpe bpe;
  Normalizer normalizer;
  PreTokenizer pre_tokenizer;
  TextDecoder decoder;
  AddedTokenFinder raw_finder, normalized_finder;
  std::vector<TokenId> bos;
  std::vector<Token> tokens;  // [vocab_size]
  TokenIds ids;
};

namespace {

// Calls on_text(part) for the text between added tokens, and appends the ids of these.
template <class OnText>
void cut_at_added_tokens(const AddedTokenFinder& finder, std::string_view text, std::vector<TokenId>& out,
                         const OnText& on_text) {
  if (finder.empty()) return on_text(text);
  for (const auto& part : finder.find(text)) {
    if (part.token != nullptr)
      out.push_back(part.token->id);
    else
      on_text(text.substr(part.span.begin, part.span.end - part.span.begin));
  }
}

}  // namespace

std::vector<TokenId> Tokenizer::encode(std::string_view text) const {
  std::vector<TokenId> out;
  PieceFinder pieces(impl_->pre_tokenizer);
  Bpe::Scratch scratch;
  const char* const begin = text.data();
  const auto encode_part = [&](std::string_view part) {  // between added tokens
    const std::string normalized = impl_->normalizer.empty() ? std::string() : impl_->normalizer.apply(part);
    const std::string_view whole = impl_->normalizer.empty() ? part : normalized;
    cut_at_added_tokens(impl_->normalized_finder, whole, out, [&](std::string_view plain) {
      const bool at_start = part.data() == begin && plain.data() == whole.data();
      pieces.for_each_piece(plain, at_start,
                            [&](std::string_view piece) { impl_->bpe.encode(piece, scratch, out); });
    });
  };
  while (!text.empty()) {
    const std::size_t valid = valid_utf8_prefix(text);
    if (valid > 0)
      cut_at_added_tokens(impl_->raw_finder, text.substr(0, valid), out, encode_part);
    else
      out.push_back(impl_->bpe.symbols().of_stray_byte(static_cast<unsigned char>(text.front())));
    text.remove_prefix(std::max<std::size_t>(valid, 1));
  }
  return out;
}

std::vector<TokenId> Tokenizer::encode_input(std::string_view text, const Bos& bos) const {
  std::vector<TokenId> out;
  if (bos.kind == Bos::Kind::automatic) out = impl_->bos;
  if (bos.kind == Bos::Kind::token) out = {bos.id};
  for (const TokenId id : out) impl_->token(id);
  const std::vector<TokenId> ids = encode(text);
  out.insert(out.end(), ids.begin(), ids.end());
  return out;
}

const std::vector<TokenId>& Tokenizer::bos() const { return impl_->bos; }

std::string Tokenizer::decode(std::span<const TokenId> ids) const {
  std::string out;
  for (std::size_t i = 0; i < ids.size(); ++i) out += impl_->text_of(impl_->token(ids[i]), i == 0);
  return impl_->decoder.finish(std::move(out));
}

std::string Tokenizer::decode_all(std::span<const TokenId> ids) const {
  std::string out;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (const Token* token = impl_->find(ids[i]))
      out += impl_->text_of(*token, i == 0);
    else
      out += fmt::format("<|id {}|>", ids[i]);
  }
  return impl_->decoder.finish(std::move(out));
}

std::size_t Tokenizer::vocab_size() const { return impl_->tokens.size(); }

std::optional<TokenId> Tokenizer::id_of(std::string_view token) const {
  const auto found = impl_->ids.find(token);
  return found == impl_->ids.end() ? std::nullopt : std::optional(found->second);
}

std::string Tokenizer::bytes_of(TokenId id) const { return impl_->token(id).bytes; }

bool Tokenizer::has(TokenId id) const { return impl_->find(id) != nullptr; }

bool Tokenizer::is_special(TokenId id) const {
  const Token* token = impl_->find(id);
  return token != nullptr && token->special;
}

bool Tokenizer::decodes_by_token() const { return impl_->decoder.by_token(); }

Tokenizer Tokenizer::make(const TokenizerSpec& spec, std::string_view where) {
  check_ids(spec.model, spec.added, std::string(where));
  auto impl = std::make_shared<const Impl>(spec);
  for (const TokenId id : impl->bos)
    if (impl->find(id) == nullptr)
      throw InputError("{}: the token before a text is {}, for which there is no token", where, id);
  return Tokenizer(std::move(impl));
}

Tokenizer::Tokenizer(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}

}  // namespace deeptail
