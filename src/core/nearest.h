// What a mistyped name was probably meant to be.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace deeptail {

// Insertions, deletions, replacements and swaps of neighbours that make one of the other (Damerau and
// Levenshtein's distance, no piece changed twice).
std::size_t edits_between(std::string_view a, std::string_view b);

// The name with the fewest edits, the first of several; "" where a third of the word or more would have to
// change. Upper and lower case count as the same.
std::string nearest_name(std::string_view word, std::span<const std::string> names);
// `; did you mean "hex"?`, or nothing: the end of a sentence.
std::string did_you_mean(std::string_view word, std::span<const std::string> names);

}  // namespace deeptail
