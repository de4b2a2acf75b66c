#include "tensors/zip.h"

#include <gtest/gtest.h>

#include "build_files.h"

namespace deeptail {
namespace {

using namespace testing;

std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

TEST(Zip, ReadsStoredEntries) {
  for (const ZipOptions& options : {ZipOptions{}, ZipOptions{true, ""}, ZipOptions{false, "a comment"}}) {
    const std::string file = zip_file({{"x", "12345"}, {"folder/y", ""}}, options);
    const ZipDirectory zip = read_zip_directory(as_bytes(file), "z");
    ASSERT_EQ(zip.size(), 2u);
    EXPECT_EQ(text_of(zip.at("x")), "12345");
    EXPECT_TRUE(zip.at("folder/y").empty());
  }
  const std::string empty = zip_file({});
  EXPECT_TRUE(read_zip_directory(as_bytes(empty), "z").empty());
}

// A valid file of one 4-byte entry "x" with `bytes` put at `offset`.
//   0 local header (31 with the name), 31 data, 35 directory (47 with the name), 82 end record
std::string patched(std::size_t offset, const std::string& bytes, bool zip64 = false) {
  return zip_file({{"x", "data"}}, {zip64, ""}).replace(offset, bytes.size(), bytes);
}

TEST(Zip, RefusesMalformedFiles) {
  const auto refused = [](const std::string& file, const std::vector<std::string>& message) {
    expect_refused([&] { read_zip_directory(as_bytes(file), "z.pth"); }, message);
  };
  const std::string u32_max(4, '\xff');
  refused("PK\x03\x04", {"z.pth: truncated", "without its end record"});
  refused(zip_file({{"x", "data"}}).substr(0, 90), {"without its end record"});
  refused(zip_file({{"x", "data", 8}}), {"entry 'x'", "compressed (method 8)"});
  refused(zip_file({{"x", "data", 0, 1}}), {"entry 'x'", "encrypted"});
  refused(zip_file({{"x", "data"}, {"x", "data"}}), {"entry 'x' appears twice"});
  refused(patched(0, "QQQQ"), {"entry 'x'", "offset 0", "expected a local header"});
  refused(patched(30, "y"), {"entry 'x'", "names 'y'"});
  refused(patched(26, "\xff\xff"), {"entry 'x'", "truncated", "name needs 65535 bytes"});
  refused(patched(35, "QQQQ"), {"offset 35", "expected a zip directory entry"});
  refused(patched(35 + 24, "\x64"), {"entry 'x'", "stored in 4 bytes, expected 100"});
  refused(patched(35 + 20, "\x64\0\0\0\x64"), {"stored in 100 bytes"});
  refused(patched(35 + 20, std::string("\x64\0\0\0\x64\0\0\0", 8)),
          {"entry 'x'", "data needs 100 bytes, 4 are left"});
  refused(patched(35 + 42, "\x64"), {"entry 'x'", "points to offset 100"});
  refused(patched(35 + 30, "\x64"), {"extra fields needs 100 bytes"});
  refused(patched(82 + 10, "\x02"), {"offset 82: a zip directory entry needs 4 bytes, 0 are left"});
  refused(patched(82 + 10, "\xff\xff"), {"zip64 record, but there is none"});
  refused(patched(82 + 16, u32_max), {"zip64 record, but there is none"});
  refused(patched(82 + 16, "\x64"), {"truncated: the zip directory at [100, +47]"});
}

TEST(Zip, RefusesMalformedZip64) {
  // 0 local, 31 data, 35 directory (47 + 28), 110 zip64 end, 166 locator, 186 end
  const auto refused = [](const std::string& file, const std::vector<std::string>& message) {
    expect_refused([&] { read_zip_directory(as_bytes(file), "z.pth"); }, message);
  };
  refused(patched(110, "QQQQ", true), {"offset 110", "expected the zip64 end record"});
  refused(patched(166 + 8, std::string(8, '\xff'), true), {"points to offset 18446744073709551615"});
  refused(patched(110 + 32, std::string(8, '\xff'), true),
          {"offset 110: a zip directory entry needs 4 bytes"});
  refused(patched(110 + 48, std::string(8, '\xff'), true), {"the zip directory at [18446744073709551615"});
  refused(patched(110 + 40, std::string(8, '\xff'), true), {"reaches beyond the file"});
  refused(patched(82 + 4, std::string(16, '\xff'), true), {"data needs 18446744073709551615 bytes"});
  refused(patched(82 + 20, std::string(8, '\xff'), true), {"points to offset 18446744073709551615"});
  refused(patched(82 + 2, "\x08", true), {"zip64 extra field needs 8 bytes"});
  refused(patched(82 + 2, "\x64", true), {"extra field needs 100 bytes"});
}

}  // namespace
}  // namespace deeptail
