#include "patterns/regex_escapes.h"

#include "core/json.h"
#include "deeptail/core.h"
#include "text/unicode.h"

namespace deeptail {

namespace {

CodePoints class_of_letter(char letter) {
  CodePoints set;
  switch (letter) {
    case 'd':
      set.add('0', '9');
      break;
    case 'w':
      set.add('0', '9');
      set.add('A', 'Z');
      set.add('_', '_');
      set.add('a', 'z');
      break;
    default:  // s
      set.add('\t', '\r');
      set.add(' ', ' ');
  }
  return set;
}

std::optional<char32_t> hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return std::nullopt;
}

// \x41, \x{1F600}
char32_t read_hex(RegexText& in) {
  const bool braces = in.take("{");
  char32_t value = 0;
  std::size_t n = 0;
  for (const std::size_t most = braces ? 6 : 2; n < most && !in.at_end(); ++n) {
    const auto digit = hex_digit(static_cast<char>(in.byte()));
    if (!digit) break;
    value = value * 16 + *digit;
    in.skip(1);
  }
  const bool is_one = value <= kLastCodePoint && (value < 0xD800 || value > 0xDFFF);
  if (braces ? n == 0 || !in.take("}") || !is_one : n != 2)
    in.fail("expected \\xHH or \\x{H...} with the number of a character");
  return value;
}

}  // namespace

char32_t RegexText::character() {
  const CodePoint c = code_point_at(pattern_, at_);
  at_ += c.length;
  return c.value;
}

void RegexText::fail(std::string_view what) const {
  throw InputError("{}: the regular expression \"{}\", at byte {}: {}", where_, printable(pattern_), at_,
                   what);
}

Escaped one_character(char32_t c) {
  Escaped out{.set = {}, .one = c};
  out.set.add(c, c);
  return out;
}

Escaped read_escape(RegexText& in) {
  if (in.at_end()) in.fail("a backslash at the end; write \\\\ for the character");
  for (const char letter : {'d', 'w', 's'}) {
    if (in.take(std::string(1, letter))) return {.set = class_of_letter(letter), .one = {}};
    if (in.take(std::string(1, static_cast<char>(letter - 'a' + 'A'))))
      return {.set = class_of_letter(letter).others(), .one = {}};
  }
  constexpr std::string_view kLetters = "nrtfae", kMeanings = "\n\r\t\f\a\x1B";
  if (const auto i = kLetters.find(static_cast<char>(in.byte())); i != kLetters.npos) {
    in.skip(1);
    return one_character(static_cast<unsigned char>(kMeanings[i]));
  }
  if (in.take("x")) return one_character(read_hex(in));
  const unsigned char c = in.byte();
  if (c >= '1' && c <= '9') in.fail("references to groups are not supported");
  const bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '0';
  if (is_letter) in.fail(fmt::format("the escape \\{} is not supported", static_cast<char>(c)));
  return one_character(in.character());
}

}  // namespace deeptail
