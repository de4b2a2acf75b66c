// How commands speak: JSON on request, short numbers for people, files that appear whole or not at all.
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

// Writes to a temporary neighbour and renames it. Throws InputError when the place cannot be written.
void write_whole_file(const std::string& path, std::string_view text);

}  // namespace deeptail::cli
