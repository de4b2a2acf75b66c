// Files that appear whole or not at all.
#pragma once

#include <string>
#include <string_view>

namespace deeptail {

// Writes a temporary neighbour, flushes it to the disk and renames it: whoever reads `path`, even after a
// crash, finds the old content or the new one. Throws InputError when the place cannot be written, and leaves
// nothing behind.
void write_file(const std::string& path, std::string_view text);

}  // namespace deeptail
