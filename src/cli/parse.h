// Values of flags.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/parse_count.h"
#include "deeptail/model.h"

namespace deeptail::cli {

// What is wrong with the text of a numeric flag, "" if nothing.
std::string whole_number_mistake(const std::string& text);  // expected: from 0 to 2^64 - 1
std::string number_mistake(const std::string& text);        // expected: finite

std::string empty_mistake(const std::string& text);  // expected: not empty

// "0,17,42" or "0 17 42" -> ids. Throws InputError naming the flag and the piece that is not a whole number.
std::vector<TokenId> parse_ids(std::string_view text, std::string_view flag);

using deeptail::parse_count;

}  // namespace deeptail::cli
