#include "text/regex_syntax.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "core/json.h"
#include "deeptail/core.h"

namespace deeptail {

namespace {

// Oniguruma's \w; PCRE2's own is narrower.
constexpr std::string_view kWord = R"(\p{Alphabetic}\p{M}\p{Nd}\p{Pc})";

constexpr std::array<std::string_view, 8> kGroups = {
    "(?:", "(?=", "(?!", "(?<=", "(?<!", "(?>", "(?i:", "(?-i:"};

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_hex(char c) { return std::isxdigit(static_cast<unsigned char>(c)) != 0; }
bool is_letter_or_digit(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; }

bool is_general_category(std::string_view name) {
  constexpr std::string_view kMajor = "LMNPSZC";
  return (name.size() == 1 || (name.size() == 2 && name[1] >= 'a' && name[1] <= 'z')) &&
         kMajor.find(name[0]) != std::string_view::npos;
}

class Translator {
 public:
  Translator(std::string_view pattern, std::string_view where) : pattern_(pattern), where_(where) {}

  std::string run() {
    while (!done()) {
      if (starts_with("\\"))
        escape();
      else if (in_set_)
        in_set();
      else
        outside_set();
    }
    if (in_set_) fail("a set without its closing ]");
    return std::move(out_);
  }

 private:
  bool done() const { return pos_ == pattern_.size(); }
  std::string_view rest() const { return pattern_.substr(pos_); }
  bool starts_with(std::string_view text) const { return rest().starts_with(text); }
  void copy(std::size_t n) {
    out_ += rest().substr(0, n);
    pos_ += n;
  }
  void replace(std::size_t n, std::string_view text) {
    out_ += text;
    pos_ += n;
  }

  [[noreturn]] void fail(std::string_view what) const {
    throw InputError(
        "{}: {} at byte {} of the pattern \"{}\" is not supported; rewrite the pattern without it", where_,
        what, pos_, printable(pattern_, 200));
  }

  void outside_set() {
    switch (pattern_[pos_]) {
      case '[':
        in_set_ = true;
        copy(starts_with("[^") ? 2 : 1);
        if (starts_with("]")) fail("an empty set");
        return;
      case '(':
        return open_group();
      case '{':
        return interval();
      default:
        return copy(1);
    }
  }

  void in_set() {
    if (starts_with("[")) fail("a set inside a set");
    if (starts_with("&&")) fail("an intersection of sets");
    if (starts_with("]")) in_set_ = false;
    copy(1);
  }

  void open_group() {
    if (starts_with("(*")) fail("the construct (*");
    if (!starts_with("(?")) return replace(1, "(?:");
    for (const std::string_view group : kGroups)
      if (starts_with(group)) return copy(group.size());
    fail("this kind of group");
  }

  // {n}, {n,} and {n,m}; Oniguruma reads {n}? and {n,m}+ in its own way.
  void interval() {
    std::size_t end = 1;
    const auto digits = [&] {
      const std::size_t begin = end;
      while (end < rest().size() && is_digit(rest()[end])) ++end;
      return rest().substr(begin, end - begin);
    };
    const auto smallest = digits();
    const bool range = end < rest().size() && rest()[end] == ',';
    if (range) ++end;
    const auto largest = range ? digits() : std::string_view();
    if (smallest.empty() || smallest.size() > 5 || largest.size() > 5 || end == rest().size() ||
        rest()[end] != '}')
      fail("a { that does not begin {n}, {n,} or {n,m}");
    if (!largest.empty() && std::stoi(std::string(largest)) < std::stoi(std::string(smallest)))
      fail("an interval {n,m} with n > m");
    copy(end + 1);
    if (starts_with("+")) fail("a + after an interval");
    if (starts_with("?") && !range) fail("a ? after {n}");
  }

  void escape() {
    if (rest().size() < 2) fail("a \\ at the end");
    const char c = rest()[1];
    if (!is_letter_or_digit(c)) return static_cast<unsigned char>(c) < 0x80 ? copy(2) : replace(1, "");
    switch (c) {
      case 's':
        return replace(2, R"(\p{White_Space})");
      case 'S':
        return replace(2, R"(\P{White_Space})");
      case 'd':
        return replace(2, R"(\p{Nd})");
      case 'D':
        return replace(2, R"(\P{Nd})");
      case 'w':
        return replace(2, in_set_ ? std::string(kWord) : fmt::format("[{}]", kWord));
      case 'W':
        if (in_set_) fail("\\W inside a set");
        return replace(2, fmt::format("[^{}]", kWord));
      case 'v':
        return replace(2, R"(\x0b)");
      case 'n':
      case 'r':
      case 't':
      case 'f':
      case 'a':
      case 'e':
        return copy(2);
      case 'p':
      case 'P':
        return property();
      case 'x':
      case 'u':
        return hexadecimal();
      case 'b':
        if (in_set_) return replace(2, R"(\x08)");
        return replace(2, fmt::format("(?:(?<=[{0}])(?![{0}])|(?<![{0}])(?=[{0}]))", kWord));
      case 'B':
        if (!in_set_) return replace(2, fmt::format("(?:(?<=[{0}])(?=[{0}])|(?<![{0}])(?![{0}]))", kWord));
        break;
      case 'A':
      case 'z':
      case 'Z':
        if (!in_set_) return copy(2);
        break;
      default:
        break;
    }
    fail(fmt::format("\\{}", c));
  }

  // \p{L}, \p{^Lu}, \P{Han}: a name that is no general category or known property is a script.
  void property() {
    const std::size_t end = rest().find('}');
    if (rest().size() < 4 || rest()[2] != '{' || end == std::string_view::npos) fail("a \\p without {name}");
    std::string_view name = rest().substr(3, end - 3);
    const bool inverted = name.starts_with('^');
    if (inverted) name.remove_prefix(1);
    if (name.empty() ||
        !std::all_of(name.begin(), name.end(), [](char c) { return is_letter_or_digit(c) || c == '_'; }))
      fail("this property name");
    const bool known = is_general_category(name) || name == "Alphabetic" || name == "White_Space" ||
                       name == "Any" || name == "Emoji" || name == "Uppercase" || name == "Lowercase" ||
                       name == "Ideographic";
    replace(end + 1, fmt::format("\\{}{{{}{}{}}}", rest()[1], inverted ? "^" : "", known ? "" : "sc:", name));
  }

  // \x41, \x{1F600}, \u00e9.
  void hexadecimal() {
    std::string_view digits;
    std::size_t length;
    if (starts_with("\\x{")) {
      const std::size_t end = rest().find('}');
      if (end == std::string_view::npos) fail("a \\x{ without its closing }");
      digits = rest().substr(3, end - 3);
      length = end + 1;
    } else {
      digits = rest().substr(2, rest()[1] == 'x' ? 2 : 4);
      length = 2 + digits.size();
      if (digits.size() != (rest()[1] == 'x' ? 2u : 4u)) fail("a short \\x or \\u");
    }
    if (digits.empty() || digits.size() > 6 || !std::all_of(digits.begin(), digits.end(), is_hex))
      fail("a \\x or \\u without hexadecimal digits");
    // Oniguruma takes \x80 and up for a byte, not for a code point.
    if (starts_with("\\x") && !starts_with("\\x{") && digits[0] >= '8') fail("\\x80 or higher");
    replace(length, fmt::format("\\x{{{}}}", digits));
  }

  std::string_view pattern_, where_;
  std::size_t pos_ = 0;
  bool in_set_ = false;
  std::string out_;
};

}  // namespace

std::string pcre2_from_oniguruma(std::string_view pattern, std::string_view where) {
  return Translator(pattern, where).run();
}

}  // namespace deeptail
