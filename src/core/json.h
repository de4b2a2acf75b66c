// JSON text to a document and back, with errors a user can act on. The library behind it takes seconds to
// compile wherever it parses or writes, so that happens here alone.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace deeptail {

using Json = nlohmann::json;
using OrderedJson = nlohmann::ordered_json;  // keeps the order in which fields were added
using JsonWalk = nlohmann::json_sax<Json>;   // is told every part of a document, in order

// Throws InputError naming `where` (a file, say) and the byte offset of the first mistake. Nesting deeper
// than 64 is refused, and so is a key that occurs twice in one object: readers disagree on which one counts.
Json parse_json(std::string_view text, std::string_view where);
// Builds nothing. `walk` throws from parse_error() to tell a mistake.
void walk_json(std::string_view text, JsonWalk& walk);

// One line, or with an indent one line per value. Invalid UTF-8 is replaced; ascii: everything beyond ASCII
// is escaped.
std::string json_text(const Json& document, bool ascii = false);
std::string json_text(const OrderedJson& document, int indent = -1);

// Adds a field at the end of an object that has none of that name: looking for it would take quadratic time
// over many.
inline void append_field(OrderedJson& object, std::string name, OrderedJson value) {
  object.get_ref<OrderedJson::object_t&>().emplace_back(std::move(name), std::move(value));
}

// Text made safe to print inside a message: control characters and invalid UTF-8 escaped, long text
// shortened.
std::string printable(std::string_view text, std::size_t max_length = 80);

}  // namespace deeptail
