// Text in gzip's form, and back.
#pragma once

#include <string>
#include <string_view>

namespace deeptail {

// Without a name or a time: the same text gives the same bytes.
std::string gzipped(std::string_view text);
// Whether these bytes begin as a gzip file does.
bool is_compressed(std::string_view bytes);
// Throws InputError, beginning with `where`, for bytes that are not one gzip file, and for text that would
// not fit into memory.
std::string gunzipped(std::string_view bytes, std::string_view where);

}  // namespace deeptail
