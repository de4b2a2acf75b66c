#include "cli/parse.h"

#include <charconv>
#include <cmath>
#include <optional>

#include "core/screen_text.h"

namespace deeptail::cli {

std::vector<TokenId> parse_ids(std::string_view text, std::string_view flag) {
  constexpr std::string_view kBlank = " \t\r\n";
  const auto mistake = [&](std::string_view piece) {
    return InputError("{}: expected whole numbers separated by commas or spaces, found {}", flag,
                      quoted_text(piece));
  };
  std::vector<TokenId> ids;
  bool after_comma = true;  // then an id must follow
  for (std::size_t at = 0;;) {
    at = std::min(text.find_first_not_of(kBlank, at), text.size());
    if (at == text.size()) break;
    const std::size_t end = std::min(text.find_first_of(" \t\r\n,", at), text.size());
    const std::string_view piece = text.substr(at, end - at);
    if (piece.empty()) {  // at a comma
      if (after_comma) throw mistake("");
      after_comma = true;
      at = end + 1;
      continue;
    }
    TokenId id = 0;
    const auto [stop, error] = std::from_chars(piece.data(), piece.data() + piece.size(), id);
    if (error != std::errc() || stop != piece.data() + piece.size()) throw mistake(piece);
    ids.push_back(id);
    after_comma = false;
    at = end;
  }
  if (after_comma) throw mistake("");
  return ids;
}

std::string whole_number_mistake(const std::string& text) {
  std::uint64_t n = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), n);
  if (error == std::errc() && stop == text.data() + text.size()) return "";
  return fmt::format("expected a whole number from 0 to 2^64 - 1, found \"{}\"", screen_text(text));
}

std::string number_mistake(const std::string& text) {
  double value = 0.0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && stop == text.data() + text.size() && std::isfinite(value)) return "";
  return fmt::format("expected a finite number, found \"{}\"", screen_text(text));
}

std::string empty_mistake(const std::string& text) {
  return text.empty() ? "expected a value, found an empty one" : "";
}

}  // namespace deeptail::cli
