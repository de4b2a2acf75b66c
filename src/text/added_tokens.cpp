#include "text/added_tokens.h"

#include <algorithm>

#include "text/unicode.h"

namespace deeptail {

namespace {

std::uint64_t edge(std::uint32_t node, char byte) {
  return static_cast<std::uint64_t>(node) << 8 | static_cast<unsigned char>(byte);
}

bool touches_word(std::string_view text, Span span) {
  return (span.begin > 0 && is_word(code_point_before(text, span.begin).value)) ||
         (span.end < text.size() && is_word(code_point_at(text, span.end).value));
}

// Where the white space before `pos` begins, not before `from`.
std::size_t before_white_space(std::string_view text, std::size_t pos, std::size_t from) {
  while (pos > from) {
    const CodePoint c = code_point_before(text, pos);
    if (!is_white_space(c.value)) break;
    pos -= c.length;
  }
  return pos;
}

// Where white space ends. Asked with ascending positions, it looks at every character once: tokens that are
// white space themselves and take what follows would otherwise look at a long run again for each of them.
class WhiteSpaceEnd {
 public:
  explicit WhiteSpaceEnd(std::string_view text) : text_(text) {}

  std::size_t after(std::size_t pos) {
    if (pos >= begin_ && pos <= end_) return end_;
    begin_ = end_ = pos;
    while (end_ < text_.size()) {
      const CodePoint c = code_point_at(text_, end_);
      if (!is_white_space(c.value)) break;
      end_ += c.length;
    }
    return end_;
  }

 private:
  std::string_view text_;
  std::size_t begin_ = 1, end_ = 0;  // of the run looked at last; none yet
};

}  // namespace

AddedTokenFinder::AddedTokenFinder(std::vector<AddedToken> tokens, const std::vector<std::string>& patterns)
    : tokens_(std::move(tokens)), token_at_{-1} {
  for (std::size_t i = 0; i < tokens_.size(); ++i) {
    std::uint32_t node = 0;
    for (const char byte : patterns[i]) {
      const auto [child, added] =
          children_.try_emplace(edge(node, byte), static_cast<std::uint32_t>(token_at_.size()));
      if (added) token_at_.push_back(-1);
      node = child->second;
    }
    if (token_at_[node] < 0) token_at_[node] = static_cast<std::int32_t>(i);
    first_byte_[static_cast<unsigned char>(patterns[i].front())] = true;
  }
}

AddedTokenFinder::Match AddedTokenFinder::next_match(std::string_view text, std::size_t from) const {
  for (std::size_t begin = from; begin < text.size(); ++begin) {
    if (!first_byte_[static_cast<unsigned char>(text[begin])]) continue;
    Match longest{{begin, begin}, nullptr};
    std::uint32_t node = 0;
    for (std::size_t end = begin; end < text.size();) {
      const auto child = children_.find(edge(node, text[end]));
      if (child == children_.end()) break;
      node = child->second;
      ++end;
      if (token_at_[node] >= 0) longest = {{begin, end}, &tokens_[static_cast<std::size_t>(token_at_[node])]};
    }
    if (longest.token != nullptr) return longest;
  }
  return {{text.size(), text.size()}, nullptr};
}

std::vector<AddedTokenFinder::Part> AddedTokenFinder::find(std::string_view text) const {
  std::vector<Part> parts;
  std::size_t covered = 0;
  std::size_t from = 0;
  WhiteSpaceEnd white_space(text);
  while (true) {
    auto [span, token] = next_match(text, from);
    if (token == nullptr) break;
    from = span.end;
    if (token->single_word && touches_word(text, span)) continue;
    if (token->lstrip) span.begin = std::max(before_white_space(text, span.begin, covered), covered);
    if (token->rstrip) span.end = white_space.after(span.end);
    if (span.begin >= span.end) continue;  // white space that the token before took already
    if (covered < span.begin) parts.push_back({{covered, span.begin}, nullptr});
    parts.push_back({span, token});
    covered = span.end;
  }
  if (covered < text.size()) parts.push_back({{covered, text.size()}, nullptr});
  return parts;
}

}  // namespace deeptail
