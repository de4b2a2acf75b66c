#include "deeptail/patterns.h"
#include "patterns/nfa.h"

namespace deeptail {

ByteDfa matches(std::string_view regex, std::string_view where) {
  ByteDfa dfa = minimise(determinise(nfa_of(parse_regex(regex, where), where), where));
  if (dfa.size() > kMaxDfaStates)
    throw InputError("{}: the regular expression needs an automaton of {} states; expected at most {}", where,
                     dfa.size(), kMaxDfaStates);
  return dfa;
}

}  // namespace deeptail
