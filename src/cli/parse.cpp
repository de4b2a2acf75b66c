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

namespace {

std::optional<std::uint64_t> whole_number(std::string_view text) {
  std::uint64_t n = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), n);
  if (error != std::errc() || stop != text.data() + text.size()) return std::nullopt;
  return n;
}

// base^exponent or mantissa e exponent.
std::optional<std::uint64_t> count_of(std::string_view text) {
  const std::size_t mark = text.find_first_of("^eE");
  if (mark == std::string_view::npos) return whole_number(text);
  const auto left = whole_number(text.substr(0, mark)), exponent = whole_number(text.substr(mark + 1));
  if (!left || !exponent || *exponent > 62) return std::nullopt;
  const bool power = text[mark] == '^';
  std::uint64_t n = power ? 1 : *left;
  for (std::uint64_t i = 0; i < *exponent; ++i)
    if (__builtin_mul_overflow(n, power ? *left : 10, &n)) return std::nullopt;
  return n;
}

}  // namespace

std::string whole_number_mistake(const std::string& text) {
  if (whole_number(text)) return "";
  return fmt::format("expected a whole number from 0 to 2^64 - 1, found \"{}\"", printable(text));
}

std::string number_mistake(const std::string& text) {
  double value = 0.0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && stop == text.data() + text.size() && std::isfinite(value)) return "";
  return fmt::format("expected a finite number, found \"{}\"", printable(text));
}

std::uint64_t parse_count(std::string_view text, std::string_view flag) {
  const auto n = count_of(text);
  if (!n || *n < 1 || *n > std::uint64_t{1} << 62)
    throw InputError("{}: expected a whole number from 1 to 2^62, such as 1000000, 1e6 or 2^20, found \"{}\"",
                     flag, printable(text));
  return *n;
}

}  // namespace deeptail::cli
