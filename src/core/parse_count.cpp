#include "core/parse_count.h"

#include <charconv>
#include <optional>
#include <string>

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

std::optional<std::uint64_t> power(std::uint64_t n, std::uint64_t base, std::uint64_t exponent) {
  if (exponent > 62) return std::nullopt;
  for (std::uint64_t i = 0; i < exponent; ++i)
    if (__builtin_mul_overflow(n, base, &n)) return std::nullopt;
  return n;
}

// 1.6e6: decimals are digits that the exponent moves before the point.
std::optional<std::uint64_t> scientific(std::string_view mantissa, std::string_view exponent) {
  if (exponent.starts_with('+')) exponent.remove_prefix(1);
  std::string digits(mantissa);
  std::uint64_t decimals = 0;
  if (const std::size_t point = digits.find('.'); point != std::string::npos) {
    decimals = digits.size() - point - 1;
    digits.erase(point, 1);
  }
  const auto left = digits_only(digits), ten = digits_only(exponent);
  if (!left || !ten || *ten < decimals) return std::nullopt;
  return power(*left, 10, *ten - decimals);
}

std::optional<std::uint64_t> count_of(std::string_view text) {
  const std::size_t mark = text.find_first_of("^eE");
  if (mark == std::string_view::npos) return digits_only(text);
  const std::string_view left = text.substr(0, mark), right = text.substr(mark + 1);
  if (text[mark] != '^') return scientific(left, right);
  const auto base = digits_only(left), exponent = digits_only(right);
  return base && exponent ? power(1, *base, *exponent) : std::nullopt;
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
