#include "cli/parse.h"

#include <charconv>
#include <cmath>
#include <optional>

#include "core/json.h"

namespace deeptail::cli {

std::vector<TokenId> parse_ids(std::string_view text, std::string_view flag) {
  std::vector<TokenId> ids;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    std::string_view piece = text.substr(at, end - at);
    while (piece.starts_with(' ')) piece.remove_prefix(1);
    while (piece.ends_with(' ')) piece.remove_suffix(1);
    TokenId id = 0;
    const auto [stop, error] = std::from_chars(piece.data(), piece.data() + piece.size(), id);
    if (error != std::errc() || stop != piece.data() + piece.size())
      throw InputError("{}: expected whole numbers separated by commas, found \"{}\"", flag,
                       printable(piece));
    ids.push_back(id);
    at = end + 1;
  }
  return ids;
}

std::string whole_number_mistake(const std::string& text) {
  std::uint64_t n = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), n);
  if (error == std::errc() && stop == text.data() + text.size()) return "";
  return fmt::format("expected a whole number from 0 to 2^64 - 1, found \"{}\"", printable(text));
}

std::string number_mistake(const std::string& text) {
  double value = 0.0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && stop == text.data() + text.size() && std::isfinite(value)) return "";
  return fmt::format("expected a finite number, found \"{}\"", printable(text));
}

std::string empty_mistake(const std::string& text) {
  return text.empty() ? "expected a value, found an empty one" : "";
}

}  // namespace deeptail::cli
