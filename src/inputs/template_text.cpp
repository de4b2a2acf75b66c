#include <algorithm>
#include <utility>

#include "inputs/template_law.h"

namespace deeptail {

namespace {

bool is_name(std::string_view name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  });
}

}  // namespace

TemplateText parse_template(std::string_view text, const std::string& where) {
  TemplateText out;
  std::string plain;
  const auto end_plain = [&] {
    if (!plain.empty()) out.pieces.push_back({.text = std::exchange(plain, {})});
  };
  while (!text.empty()) {
    const bool is_double = text.starts_with("{{") || text.starts_with("}}");
    if (is_double || (text[0] != '{' && text[0] != '}')) {
      plain += text[0];
      text.remove_prefix(is_double ? 2 : 1);
      continue;
    }
    const std::size_t close = text.find('}');
    if (text[0] == '}' || close == text.npos || !is_name(text.substr(1, close - 1)))
      throw InputError(
          "{}: \"{}\" is no slot; a slot is {{name}} with letters, digits and _, and a brace is {{{{ or }}}}",
          where, printable(text.substr(0, 40)));
    const std::string name(text.substr(1, close - 1));
    text.remove_prefix(close + 1);
    end_plain();
    const auto found = std::find(out.names.begin(), out.names.end(), name);
    out.pieces.push_back({.text = {}, .slot = static_cast<std::size_t>(found - out.names.begin())});
    if (found == out.names.end()) out.names.push_back(name);
  }
  end_plain();
  return out;
}

}  // namespace deeptail
