// The text of a regular expression while it is read, and what stands behind a backslash.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "patterns/code_points.h"

namespace deeptail {

class RegexText {
 public:
  RegexText(std::string_view pattern, std::string_view where) : pattern_(pattern), where_(where) {}

  bool at_end() const { return at_ == pattern_.size(); }
  std::string_view rest() const { return pattern_.substr(at_); }
  bool sees(std::string_view text) const { return rest().starts_with(text); }
  bool take(std::string_view text) {
    if (!sees(text)) return false;
    at_ += text.size();
    return true;
  }
  void skip(std::size_t bytes) { at_ += bytes; }
  unsigned char byte() const { return static_cast<unsigned char>(pattern_[at_]); }
  char32_t character();  // the next one, which must be there

  [[noreturn]] void fail(std::string_view what) const;

 private:
  std::string_view pattern_, where_;
  std::size_t at_ = 0;
};

struct Escaped {
  CodePoints set;
  std::optional<char32_t> one;  // where it is one character
};
Escaped one_character(char32_t c);
// What follows a backslash: a character, or a set of them.
Escaped read_escape(RegexText& in);

}  // namespace deeptail
