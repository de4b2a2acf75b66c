// Any bytes as a regular expression, a zero byte, and a text: either refused with an InputError, or a complete
// automaton that finds what it accepts.
#include <cstdlib>

#include "deeptail/patterns.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const std::size_t cut = std::min(input.find('\0'), input.size());
  const std::string_view regex = input.substr(0, cut), text = input.substr(std::min(cut + 1, input.size()));
  if (regex.size() > 100) return 0;  // larger ones only take longer
  try {
    const deeptail::ByteDfa dfa = deeptail::matches(regex, "fuzz");
    if (dfa.size() == 0 || dfa.size() > deeptail::kMaxDfaStates || dfa.start >= dfa.size()) std::abort();
    for (std::size_t state = 0; state < dfa.size(); ++state)
      for (const std::uint32_t next : dfa.next[state])
        if (next >= dfa.size() || (dfa.accepting[state] && next != state)) std::abort();
    const auto found = deeptail::find_match(dfa, text);
    if (found.has_value() != dfa.accepts(text)) std::abort();
    if (found && (found->begin > found->end || found->end > text.size())) std::abort();
  } catch (const deeptail::InputError&) {
  }
  return 0;
}
