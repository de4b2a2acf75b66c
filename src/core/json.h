// JSON text to a document, with errors a user can act on.
#pragma once

#include <nlohmann/json.hpp>
#include <string_view>

namespace deeptail {

using Json = nlohmann::json;

// Throws InputError naming `where` (a file, say) and the byte offset of the first mistake. Nesting deeper
// than 64 is refused.
Json parse_json(std::string_view text, std::string_view where);

// Text made safe to print inside a message: control characters and invalid UTF-8 escaped, long text
// shortened.
std::string printable(std::string_view text, std::size_t max_length = 80);

}  // namespace deeptail
