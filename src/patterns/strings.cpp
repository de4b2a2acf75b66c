#include "deeptail/patterns.h"

namespace deeptail {

namespace {

void check_text(std::string_view text, std::size_t most) {
  if (text.empty()) throw InputError("the text to look for is empty; expected at least one character");
  if (text.size() > most)
    throw InputError("the text to look for has {} bytes; expected at most {}", text.size(), most);
}

ByteDfa states(std::size_t n, std::size_t accepting) {
  ByteDfa dfa;
  dfa.next.resize(n);
  dfa.accepting.assign(n, 0);
  dfa.accepting[accepting] = 1;
  dfa.accepting_at_end = dfa.accepting;
  dfa.next[accepting].fill(static_cast<std::uint32_t>(accepting));
  return dfa;
}

}  // namespace

// State i: its first i bytes were read; the last one: something else was.
ByteDfa starts_with(std::string_view text) {
  check_text(text, kMaxDfaStates - 2);
  const std::size_t n = text.size();
  const auto dead = static_cast<std::uint32_t>(n + 1);
  ByteDfa dfa = states(n + 2, n);
  dfa.next[dead].fill(dead);
  for (std::size_t i = 0; i < n; ++i) {
    dfa.next[i].fill(dead);
    dfa.next[i][static_cast<unsigned char>(text[i])] = static_cast<std::uint32_t>(i + 1);
  }
  return dfa;
}

// State i: the last i bytes are its first i, and no more are (Knuth, Morris and Pratt).
ByteDfa contains(std::string_view text) {
  check_text(text, kMaxDfaStates - 1);
  const std::size_t n = text.size();
  ByteDfa dfa = states(n + 1, n);
  std::uint32_t border = 0;  // the state after text[1, i)
  for (std::size_t i = 0; i < n; ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (i == 0)
      dfa.next[0].fill(0);
    else
      dfa.next[i] = dfa.next[border];
    if (i > 0) border = dfa.next[border][byte];
    dfa.next[i][byte] = static_cast<std::uint32_t>(i + 1);
  }
  return dfa;
}

}  // namespace deeptail
