// How commands speak: JSON on request, short numbers for people.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace deeptail::cli {

// Keeps the order in which fields were added.
using OrderedJson = nlohmann::ordered_json;

// Every digit of the double; infinity becomes the string "inf", because JSON has no number for it.
OrderedJson json_number(double value);
OrderedJson json_number(std::optional<double> value);  // null where there is none

// Six significant digits.
std::string short_number(double value);

// One line on standard output.
void print_json(const OrderedJson& document);

}  // namespace deeptail::cli
