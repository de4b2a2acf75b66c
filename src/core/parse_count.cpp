#include "core/parse_count.h"

#include <charconv>
#include <optional>

#include "core/json.h"
#include "deeptail/core.h"

namespace deeptail {

namespace {

std::optional<std::uint64_t> digits_only(std::string_view text) {
  std::uint64_t n = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), n);
  if (error != std::errc() || stop != text.data() + text.size()) return std::nullopt;
  return n;
}

// base^exponent or mantissa e exponent.
std::optional<std::uint64_t> count_of(std::string_view text) {
  const std::size_t mark = text.find_first_of("^eE");
  if (mark == std::string_view::npos) return digits_only(text);
  const auto left = digits_only(text.substr(0, mark)), exponent = digits_only(text.substr(mark + 1));
  if (!left || !exponent || *exponent > 62) return std::nullopt;
  const bool power = text[mark] == '^';
  std::uint64_t n = power ? 1 : *left;
  for (std::uint64_t i = 0; i < *exponent; ++i)
    if (__builtin_mul_overflow(n, power ? *left : 10, &n)) return std::nullopt;
  return n;
}

}  // namespace

std::uint64_t parse_count(std::string_view text, std::string_view where) {
  const auto n = count_of(text);
  if (!n || *n < 1 || *n > std::uint64_t{1} << 62)
    throw InputError("{}: expected a whole number from 1 to 2^62, such as 1000000, 1e6 or 2^20, found \"{}\"",
                     where, printable(text));
  return *n;
}

}  // namespace deeptail
