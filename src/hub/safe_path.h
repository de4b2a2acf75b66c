// Names that others chose, and that become paths in the cache.
#pragma once

#include <string_view>

namespace deeptail {

// Relative, of plain parts: no "..", ".", empty part, backslash, colon or control character, so that nothing
// outside the folder is meant, on any system.
bool is_safe_path(std::string_view path);

}  // namespace deeptail
