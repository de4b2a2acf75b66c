// Files that appear whole or not at all.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

namespace deeptail {

// Writes a temporary neighbour, flushes it to the disk and renames it: whoever reads `path`, even after a
// crash, finds the old content or the new one. A link is followed. Throws InputError when the place cannot be
// written or holds something else than a regular file, and leaves nothing behind.
void write_file(const std::string& path, std::string_view text);
// The same for a file of several pieces, one after the other: a header and values that need not be joined
// first.
void write_file(const std::string& path, std::initializer_list<std::string_view> pieces);

// Removes what processes that were killed while they wrote `path` left beside it. Only for a path that nobody
// else may be writing now.
void remove_unfinished(const std::string& path);

// Throws InputError unless a file could be written there: for before long work.
void check_writable(const std::string& path);

// Makes the folder and those above it where they are missing. Throws InputError when it cannot.
void make_folder(const std::string& folder);

// Throws InputError when both name one file.
void check_distinct(const std::string& a, const std::string& b);

}  // namespace deeptail
