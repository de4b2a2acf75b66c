// What the text of a token looks like. Letters are ASCII unless said otherwise.
#pragma once

#include <string>
#include <string_view>

namespace deeptail {

bool is_letters(const std::string& text);      // letters only
bool is_camel(const std::string& text);        // two or more, the first a capital, the others small
bool is_spaced_word(const std::string& text);  // a space, then letters
bool is_shouted(const std::string& text);      // two or more of capitals and ,.?!:; perhaps after a space
bool is_alphabetic(const std::string& text);   // letters of any script, and spaces; at least one letter
bool is_one_of(const std::string& text, std::string_view characters);

}  // namespace deeptail
