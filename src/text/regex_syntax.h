// HuggingFace's patterns are written for Oniguruma; PCRE2 runs them here.
#pragma once

#include <string>
#include <string_view>

namespace deeptail {

// The PCRE2 pattern (for UTF | MULTILINE) that means what `pattern` means to Oniguruma. Constructs that
// differ between the two are rewritten (\s, \d, \w, \b, \v, \uXXXX, script names; groups do not capture), and
// what has no equal is refused: InputError naming `where`.
std::string pcre2_from_oniguruma(std::string_view pattern, std::string_view where);

}  // namespace deeptail
