// Fields of CSV files that programs and people open.
#pragma once

#include <string>
#include <string_view>

namespace deeptail {

// Text as one field: quoted where a comma, a quote or a line break asks for it (RFC 4180). What a spreadsheet
// would take for a formula, because it begins with = + - @ or a tab or return, gets an apostrophe in front.
// Numbers are written without it.
std::string csv_field(std::string_view text);

}  // namespace deeptail
