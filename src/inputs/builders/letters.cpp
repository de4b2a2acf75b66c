#include "inputs/builders/letters.h"

#include <utf8proc.h>

#include <algorithm>

#include "text/unicode.h"

namespace deeptail {

namespace {

bool is_small(char c) { return c >= 'a' && c <= 'z'; }
bool is_capital(char c) { return c >= 'A' && c <= 'Z'; }
bool is_ascii_letter(char c) { return is_small(c) || is_capital(c); }
bool all_letters(std::string_view text) { return std::all_of(text.begin(), text.end(), is_ascii_letter); }

bool is_any_letter(char32_t c) {
  const utf8proc_category_t category = utf8proc_category(static_cast<utf8proc_int32_t>(c));
  return category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_LO;
}

}  // namespace

bool is_letters(const std::string& text) { return all_letters(text); }

bool is_camel(const std::string& text) {
  return text.size() > 1 && is_capital(text[0]) && std::all_of(text.begin() + 1, text.end(), is_small);
}

bool is_spaced_word(const std::string& text) {
  return text.size() > 1 && text[0] == ' ' && all_letters(std::string_view(text).substr(1));
}

bool is_shouted(const std::string& text) {
  std::string_view rest = text;
  if (rest.starts_with(' ')) rest.remove_prefix(1);
  const auto loud = [](char c) {
    return is_capital(c) || std::string_view(",.?!:;").find(c) != std::string_view::npos;
  };
  return text.size() > 1 && std::all_of(rest.begin(), rest.end(), loud);
}

bool is_alphabetic(const std::string& text) {
  bool any = false;
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint c = code_point_at(text, at);
    at += c.length;
    if (c.value == U' ') continue;
    if (!is_any_letter(c.value)) return false;
    any = true;
  }
  return any;
}

bool is_one_of(const std::string& text, std::string_view characters) {
  return text.size() == 1 && characters.find(text[0]) != std::string_view::npos;
}

}  // namespace deeptail
