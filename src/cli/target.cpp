#include "cli/target.h"

#include <algorithm>
#include <charconv>
#include <span>

#include "core/json.h"

namespace deeptail::cli {

namespace {

struct Piece {
  std::string_view text;
  bool quoted = false;
};

std::vector<Piece> split(std::string_view text) {
  std::vector<Piece> pieces;
  for (std::size_t at = 0; at <= text.size();) {
    std::size_t end;
    // A quote that closes before a comma or the end holds one token, commas included.
    if (const std::size_t close = text.find('"', at + 1);
        at < text.size() && text[at] == '"' && close != std::string_view::npos && close > at + 1 &&
        (close + 1 == text.size() || text[close + 1] == ',')) {
      pieces.push_back({text.substr(at + 1, close - at - 1), true});
      end = close + 1;
    } else {
      end = std::min(text.find(',', at), text.size());
      pieces.push_back({text.substr(at, end - at)});
    }
    at = end + 1;
  }
  return pieces;
}

std::optional<TokenId> as_id(std::string_view text) {
  TokenId id = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), id);
  if (text.empty() || error != std::errc() || stop != text.data() + text.size()) return std::nullopt;
  return id;
}

std::string why_not(std::string_view text, const std::optional<NamedTokenizer>& tokenizer) {
  constexpr std::size_t kMostIds = 16;
  if (text.empty()) return "it is empty";
  if (!tokenizer) return "the model has no tokenizer, so only ids can be given";
  try {
    const std::vector<TokenId> ids = tokenizer->tokenizer.encode(text);
    return fmt::format("it is {} tokens: ids {}{}", ids.size(),
                       fmt::join(std::span(ids).first(std::min(kMostIds, ids.size())), ", "),
                       ids.size() > kMostIds ? ", ..." : "");
  } catch (const InputError& e) {
    return e.what();
  }
}

TokenId resolve(Piece piece, const std::optional<NamedTokenizer>& tokenizer) {
  if (const auto id = as_id(piece.text); id && !piece.quoted) return *id;
  if (const auto id = tokenizer ? tokenizer->tokenizer.id_of(piece.text) : std::nullopt) return *id;
  throw InputError("--target: \"{}\" is not a token id and not one token of this model: {}",
                   printable(piece.text), why_not(piece.text, tokenizer));
}

}  // namespace

Target parse_target(std::string_view text, const Head& head, const std::optional<NamedTokenizer>& tokenizer) {
  if (const auto id = tokenizer ? tokenizer->tokenizer.id_of(text) : std::nullopt; id && !as_id(text))
    return Target({*id}, head);
  std::vector<TokenId> ids;
  for (const Piece& piece : split(text)) ids.push_back(resolve(piece, tokenizer));
  return Target(std::move(ids), head);
}

}  // namespace deeptail::cli
