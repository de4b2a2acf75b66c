#include "deeptail/text.h"

#include <algorithm>

#include "deeptail/core.h"
#include "text/byte_alphabet.h"
#include "text/normalizer.h"
#include "text/spec.h"
#include "text/unicode.h"

namespace deeptail {

namespace {

struct Token {
  std::string bytes;
  bool exists = false;  // ids may leave gaps
};

// What the model needs of the vocabulary. Entries with characters outside the byte alphabet are never reached
// by merging bytes; they stand for their own text.
Bpe make_bpe(const ModelSpec& model, std::string_view where) {
  Bpe::Config config;
  config.byte_ids.fill(Bpe::kNoToken);
  config.merges = model.merges;
  for (const auto& [text, id] : model.vocab) {
    const auto bytes = bytes_from_alphabet(text);
    if (!bytes) continue;
    if (bytes->size() == 1) config.byte_ids[static_cast<unsigned char>(bytes->front())] = id;
    if (model.ignore_merges) config.whole_words.emplace(*bytes, id);
  }
  const auto missing = std::find(config.byte_ids.begin(), config.byte_ids.end(), Bpe::kNoToken);
  if (model.has_unk_token && missing != config.byte_ids.end())
    throw InputError(
        "{}: model.unk_token is set and model.vocab has no token for the byte 0x{:02x}; an unk_token is "
        "supported only "
        "where it is never used: all 256 bytes in the vocabulary",
        where, missing - config.byte_ids.begin());
  return Bpe(std::move(config));
}

AddedTokenFinder make_finder(const std::vector<AddedToken>& tokens, bool normalized, bool nfc) {
  std::vector<AddedToken> chosen;
  std::vector<std::string> patterns;
  for (const AddedToken& token : tokens) {
    if (token.normalized != normalized) continue;
    chosen.push_back(token);
    patterns.push_back(normalized && nfc ? to_nfc(token.content) : token.content);
  }
  return {std::move(chosen), patterns};
}

}  // namespace

struct Tokenizer::Impl {
  Impl(const JsonNode& root, const ModelSpec& model, const std::vector<AddedToken>& added)
      : bpe(make_bpe(model, root.where())),
        nfc(read_normalizer(root)),
        pre_tokenizer(read_pre_tokenizer(root)),
        raw_finder(make_finder(added, false, nfc)),
        normalized_finder(make_finder(added, true, nfc)) {
    TokenId largest = 0;
    for (const auto& entry : model.vocab) largest = std::max(largest, entry.second);
    for (const AddedToken& token : added) largest = std::max(largest, token.id);
    tokens.resize(static_cast<std::size_t>(largest) + 1);

    // Of tokens that stand for the same bytes, id_of gives the one that encode would give.
    for (const AddedToken& token : added) add(token.content, token.id);
    std::vector<const std::pair<std::string, TokenId>*> literal;
    for (const auto& entry : model.vocab) {
      if (const auto bytes = bytes_from_alphabet(entry.first))
        add(*bytes, entry.second);
      else
        literal.push_back(&entry);
    }
    for (const auto* entry : literal) add(entry->first, entry->second);
  }

  void add(const std::string& bytes, TokenId id) {
    Token& token = tokens[static_cast<std::size_t>(id)];
    if (token.exists) return;
    token = {bytes, true};
    ids.try_emplace(bytes, id);
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

  Bpe bpe;
  bool nfc;
  PreTokenizer pre_tokenizer;
  AddedTokenFinder raw_finder, normalized_finder;
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
  const auto encode_plain = [&](std::string_view plain) {
    pieces.for_each_piece(plain, [&](std::string_view piece) { impl_->bpe.encode(piece, scratch, out); });
  };
  const auto encode_run = [&](std::string_view run) {
    cut_at_added_tokens(impl_->raw_finder, run, out, [&](std::string_view part) {
      const std::string normalized = impl_->nfc ? to_nfc(part) : std::string();
      cut_at_added_tokens(impl_->normalized_finder, impl_->nfc ? normalized : part, out, encode_plain);
    });
  };
  while (!text.empty()) {
    const std::size_t valid = valid_utf8_prefix(text);
    if (valid > 0)
      encode_run(text.substr(0, valid));
    else
      out.push_back(impl_->bpe.byte_id(static_cast<unsigned char>(text.front())));
    text.remove_prefix(std::max<std::size_t>(valid, 1));
  }
  return out;
}

std::string Tokenizer::decode(std::span<const TokenId> ids) const {
  std::string out;
  for (const TokenId id : ids) out += impl_->token(id).bytes;
  return out;
}

std::string Tokenizer::decode_all(std::span<const TokenId> ids) const {
  std::string out;
  for (const TokenId id : ids) {
    if (const Token* token = impl_->find(id))
      out += token->bytes;
    else
      out += fmt::format("<|id {}|>", id);
  }
  return out;
}

std::size_t Tokenizer::vocab_size() const { return impl_->tokens.size(); }

std::optional<TokenId> Tokenizer::id_of(std::string_view token) const {
  const auto found = impl_->ids.find(token);
  return found == impl_->ids.end() ? std::nullopt : std::optional(found->second);
}

std::string Tokenizer::bytes_of(TokenId id) const { return impl_->token(id).bytes; }

Tokenizer Tokenizer::load(const std::string& path) { return parse(InputFile(path).text(), path); }

Tokenizer Tokenizer::parse(std::string_view json, std::string_view where) {
  const Json document = parse_json(json, where);
  const JsonNode root(document, where);
  root.expect_object();
  if (root.has("version") && root.at("version").text() != "1.0") root.at("version").fail_expected("\"1.0\"");
  check_unapplied_parts(root);
  const ModelSpec model = read_model(root.at("model"));
  return Tokenizer(std::make_unique<Impl>(root, model, read_added_tokens(root, model)));
}

Tokenizer::Tokenizer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Tokenizer::Tokenizer(Tokenizer&&) noexcept = default;
Tokenizer& Tokenizer::operator=(Tokenizer&&) noexcept = default;
Tokenizer::~Tokenizer() = default;

}  // namespace deeptail
