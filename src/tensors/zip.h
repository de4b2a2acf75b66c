// The directory of a zip file, as far as torch.save uses the format: stored (uncompressed) entries, so that
// an entry's bytes are a range of the file. Read back to front:
//
//   end record        "PK\5\6", last 22 bytes (plus a comment): number of entries, size and offset of the
//   directory zip64 locator     "PK\6\7", 20 bytes before it, and zip64 end record "PK\6\6": the same in 64
//   bits directory         per entry "PK\1\2": method, sizes, name, extra fields (zip64 sizes), offset of the
//   local header local header      "PK\3\4", 30 bytes + name + extra; then the entry's bytes
#pragma once

#include <map>
#include <span>
#include <string_view>

#include "deeptail/core.h"

namespace deeptail {

// Entry name -> its bytes. Both point into the file.
using ZipDirectory = std::map<std::string_view, std::span<const std::byte>>;

ZipDirectory read_zip_directory(std::span<const std::byte> file, std::string_view where);

}  // namespace deeptail
