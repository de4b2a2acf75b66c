#include "runs/toml_keys.h"

#include <algorithm>

#include "deeptail/core.h"

namespace deeptail {

namespace {

// Where the text that begins with a quote at `at` ends: behind its closing quotes or, where they are missing,
// where the library will tell so.
std::size_t end_of_quoted(std::string_view toml, std::size_t at) {
  const char quote = toml[at];
  const std::string_view three = quote == '"' ? "\"\"\"" : "'''";
  const bool many_lines = toml.substr(at, 3) == three;
  for (std::size_t i = at + (many_lines ? 3 : 1); i < toml.size(); ++i) {
    if (quote == '"' && toml[i] == '\\')
      ++i;
    else if (!many_lines && toml[i] == '\n')
      return i;
    else if (!many_lines && toml[i] == quote)
      return i + 1;
    else if (many_lines && toml.substr(i, 3) == three)  // and up to two quotes of the text before them
      return std::min({toml.find_first_not_of(quote, i), i + 5, toml.size()});
  }
  return toml.size();
}

}  // namespace

void check_toml_keys(std::string_view toml, std::string_view where) {
  std::size_t parts = 1, line = 1;
  for (std::size_t at = 0; at < toml.size();) {
    const char c = toml[at];
    const std::size_t start = at++;
    if (c == '#') {
      at = std::min(toml.find('\n', start), toml.size());
    } else if (c == '"' || c == '\'') {
      at = end_of_quoted(toml, start);
      line += static_cast<std::size_t>(std::count(toml.begin() + static_cast<std::ptrdiff_t>(start),
                                                  toml.begin() + static_cast<std::ptrdiff_t>(at), '\n'));
    } else if (c == '.') {
      if (++parts > kMaxKeyParts)
        throw InputError(
            "{}: line {}: a key of more than {} parts joined by dots; no key of a suite has more than two",
            where, line, kMaxKeyParts);
    } else if (std::string_view("\n=,[]{}").find(c) != std::string_view::npos) {
      parts = 1;
      line += c == '\n' ? 1 : 0;
    }
  }
}

}  // namespace deeptail
