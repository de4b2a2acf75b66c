#include "cli/parse.h"

#include <charconv>

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

}  // namespace deeptail::cli
