#include "deeptail/patterns.h"

namespace deeptail {

namespace {

// The state after these bytes, from the start.
std::uint32_t state_after(const ByteDfa& dfa, std::string_view text) {
  std::uint32_t state = dfa.start;
  for (const char c : text) state = dfa.next[state][static_cast<unsigned char>(c)];
  return state;
}

}  // namespace

bool ByteDfa::accepts(std::string_view text) const { return accepting_at_end[state_after(*this, text)] != 0; }

std::optional<ByteSpan> find_match(const ByteDfa& dfa, std::string_view text) {
  if (!dfa.accepts(text)) return std::nullopt;
  std::size_t end = 0;
  for (std::uint32_t state = dfa.start; !dfa.accepting[state] && end < text.size(); ++end)
    state = dfa.next[state][static_cast<unsigned char>(text[end])];
  // A match that needs the end of the text is looked for with its end, any other without.
  const bool needs_end = !dfa.accepting[state_after(dfa, text.substr(0, end))];
  const auto& ends = needs_end ? dfa.accepting_at_end : dfa.accepting;
  std::size_t begin = end;
  while (begin > 0 && !ends[state_after(dfa, text.substr(begin, end - begin))]) --begin;
  return ByteSpan{begin, end};
}

}  // namespace deeptail
