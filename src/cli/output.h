// How commands speak: JSON on request, short numbers for people.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/json.h"

namespace deeptail::cli {

// Every digit of the double; infinity becomes the string "inf", because JSON has no number for it.
OrderedJson json_number(double value);
OrderedJson json_number(std::optional<double> value);  // null where there is none

// Six significant digits.
std::string short_number(double value);

// One line on standard output.
void print_json(const OrderedJson& document);

}  // namespace deeptail::cli
