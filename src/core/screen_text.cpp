#include "core/screen_text.h"

#include <fmt/format.h>
#include <utf8proc.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>

namespace deeptail {

namespace {

// The first character of text, or its first byte where that begins none.
struct ScreenCharacter {
  std::string_view bytes;
  std::int32_t code = -1;  // -1: not valid UTF-8
};

ScreenCharacter first_character(std::string_view text) {
  utf8proc_int32_t code = -1;
  const auto length = utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                                       static_cast<utf8proc_ssize_t>(text.size()), &code);
  if (length <= 0) return {text.substr(0, 1)};
  return {text.substr(0, static_cast<std::size_t>(length)), code};
}

// Spaces other than " " look like it or like nothing, and formats turn the direction of the text.
bool can_be_seen(std::int32_t code) {
  if (code == ' ') return true;
  if (code < 0) return false;
  switch (utf8proc_category(code)) {
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_ZS:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
      return false;
    default:
      return true;
  }
}

std::size_t columns_of(const ScreenCharacter& c) {
  return c.code < 0 ? 1 : static_cast<std::size_t>(std::max(0, utf8proc_charwidth(c.code)));
}

std::string made_safe(std::string_view text, std::size_t max_width, bool utf8, bool in_quotes) {
  std::string out;
  for (std::size_t width = 0; !text.empty();) {
    if (width >= max_width) return out + "...";
    const ScreenCharacter c = first_character(text);
    text.remove_prefix(c.bytes.size());
    const bool seen = (utf8 || c.bytes.size() == 1) && can_be_seen(c.code);
    if (seen && in_quotes && (c.code == '"' || c.code == '\\')) out += '\\', ++width;
    if (seen) out += c.bytes, width += columns_of(c);
    for (std::size_t i = 0; !seen && i < c.bytes.size(); ++i, width += 4)
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c.bytes[i]));
  }
  return out;
}

}  // namespace

std::string screen_text(std::string_view text, std::size_t max_width, bool utf8) {
  return made_safe(text, max_width, utf8, false);
}

std::string screen_text(std::string_view text, std::size_t max_width) {
  return made_safe(text, max_width, utf8_locale(), false);
}

std::string quoted_text(std::string_view text, std::size_t max_width) {
  return fmt::format("\"{}\"", made_safe(text, max_width, utf8_locale(), true));
}

bool utf8_locale() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const char* const value = std::getenv(name);
    if (value == nullptr || *value == '\0') continue;
    std::string letters;
    for (const char c : std::string_view(value))
      if (std::isalnum(static_cast<unsigned char>(c)) != 0)
        letters += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return letters.find("utf8") != std::string::npos;
  }
  return false;
}

std::size_t display_width(std::string_view text) {
  std::size_t width = 0;
  while (!text.empty()) {
    const ScreenCharacter c = first_character(text);
    width += columns_of(c);
    text.remove_prefix(c.bytes.size());
  }
  return width;
}

std::string shorten_middle(std::string_view text, std::size_t width) {
  const std::size_t whole = display_width(text);
  if (whole <= width) return std::string(text);
  const std::string_view gap = width > 4 ? ".." : "";
  const std::size_t head_width = (width - gap.size() + 1) / 2, tail_width = width - gap.size() - head_width;
  std::string head;
  std::size_t at = 0;  // columns before the character
  bool in_tail = false;
  std::string tail;
  while (!text.empty()) {
    const ScreenCharacter c = first_character(text);
    const std::size_t columns = columns_of(c);
    if (at + columns <= head_width) head += c.bytes;
    in_tail = in_tail || at >= whole - tail_width;
    if (in_tail) tail += c.bytes;
    at += columns;
    text.remove_prefix(c.bytes.size());
  }
  return fmt::format("{}{}{}", head, gap, tail);
}

}  // namespace deeptail
