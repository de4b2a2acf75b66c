#include "cli/target.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <span>

#include "core/json.h"
#include "core/screen_text.h"

namespace deeptail::cli {

namespace {

constexpr std::size_t kMostTargets = 1 << 16;
constexpr auto kLargestId = static_cast<std::uint64_t>(std::numeric_limits<TokenId>::max());

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

TokenId resolve(Piece piece, std::string_view where, const std::optional<NamedTokenizer>& tokenizer) {
  if (const auto id = as_id(piece.text); id && !piece.quoted) return *id;
  if (const auto id = tokenizer ? tokenizer->tokenizer.id_of(piece.text) : std::nullopt) return *id;
  throw InputError("{}: {} is not a token id and not one token of this model: {}", where,
                   quoted_text(piece.text), why_not(piece.text, tokenizer));
}

// A line of a file is the inside of a JSON array.
std::vector<TokenId> ids_of_line(std::string_view line, std::string_view where,
                                 const std::optional<NamedTokenizer>& tokenizer) {
  const auto mistake = [&] {
    return InputError("{}: expected ids and tokens in double quotes, such as 310 or \" the\", found {}",
                      where, screen_text(line));
  };
  Json pieces;
  try {
    pieces = parse_json(fmt::format("[{}]", line), where);
  } catch (const InputError&) {
    throw mistake();
  }
  std::vector<TokenId> ids;
  for (const Json& piece : pieces) {
    if (piece.is_string())
      ids.push_back(resolve({piece.get_ref<const std::string&>(), true}, where, tokenizer));
    else if (piece.is_number_unsigned() && piece.get<std::uint64_t>() <= kLargestId)
      ids.push_back(piece.get<TokenId>());
    else
      throw mistake();
  }
  return ids;
}

}  // namespace

Target parse_target(std::string_view text, const Head& head, const std::optional<NamedTokenizer>& tokenizer) {
  if (const auto id = tokenizer ? tokenizer->tokenizer.id_of(text) : std::nullopt; id && !as_id(text))
    return Target({*id}, head);
  std::vector<TokenId> ids;
  for (const Piece& piece : split(text)) ids.push_back(resolve(piece, "--target", tokenizer));
  return Target(std::move(ids), head);
}

std::vector<Target> parse_targets(const std::vector<std::string>& flags, const std::string& file,
                                  const Head& head, const std::optional<NamedTokenizer>& tokenizer) {
  std::vector<Target> targets;
  for (const std::string& flag : flags) targets.push_back(parse_target(flag, head, tokenizer));
  if (file.empty()) return targets;
  const std::string text(InputFile(file).text());
  std::size_t line_number = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = std::string_view(text).substr(at, end - at);
    at = end + 1;
    ++line_number;
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    const std::string where = fmt::format("{}: line {}", file, line_number);
    if (targets.size() == kMostTargets)
      throw InputError("{}: expected at most {} targets", where, kMostTargets);
    std::vector<TokenId> ids = ids_of_line(line, where, tokenizer);
    try {
      targets.emplace_back(std::move(ids), head);
    } catch (const InputError& e) {
      throw InputError("{}: {}", where, e.what());
    }
  }
  if (targets.empty()) throw InputError("{}: expected one target a line, found none", file);
  return targets;
}

}  // namespace deeptail::cli
