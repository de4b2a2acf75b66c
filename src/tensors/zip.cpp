#include "tensors/zip.h"

#include <algorithm>
#include <cstdint>

#include "core/json.h"
#include "tensors/byte_reader.h"

namespace deeptail {

namespace {

constexpr std::uint32_t kEndSignature = 0x06054b50, kZip64EndSignature = 0x06064b50,
                        kZip64LocatorSignature = 0x07064b50, kEntrySignature = 0x02014b50,
                        kLocalSignature = 0x04034b50;
constexpr std::size_t kEndSize = 22, kZip64LocatorSize = 20, kMaxComment = 0xffff;
constexpr std::uint32_t kSaturated32 = 0xffffffff;  // the real value stands in a zip64 field
constexpr std::uint16_t kSaturated16 = 0xffff;
constexpr std::uint16_t kZip64Extra = 1, kEncryptedFlag = 1, kStored = 0;

struct DirectoryRange {
  std::uint64_t n_entries, size, offset;
};

struct DirectoryEntry {
  std::string_view name;
  std::uint16_t flags, method;
  std::uint64_t compressed_size, size, local_offset;
};

void expect_signature(ByteReader& reader, std::uint32_t signature, std::string_view what) {
  const std::size_t at = reader.offset();
  if (const auto found = reader.read<std::uint32_t>(what); found != signature)
    throw InputError("{}: offset {}: expected {} (signature {:08x}), found {:08x}", reader.where(), at, what,
                     signature, found);
}

// A comment may follow the end record, so search backwards for a record whose comment ends with the file.
std::size_t find_end_record(std::span<const std::byte> file, std::string_view where) {
  if (file.size() >= kEndSize) {
    const std::size_t last = file.size() - kEndSize;
    const std::size_t first = last - std::min(last, kMaxComment);
    for (std::size_t at = last + 1; at-- > first;)
      if (load<std::uint32_t>(&file[at]) == kEndSignature && load<std::uint16_t>(&file[at + 20]) == last - at)
        return at;
  }
  throw InputError("{}: truncated: a zip file of {} bytes without its end record; download or save it again",
                   where, file.size());
}

DirectoryRange read_zip64_end(std::span<const std::byte> file, std::size_t locator_at,
                              std::string_view where) {
  ByteReader locator(file, where, locator_at);
  expect_signature(locator, kZip64LocatorSignature, "the zip64 locator");
  locator.take(4, "disk number");
  ByteReader end(file, where, locator.read<std::uint64_t>("the offset of the zip64 end record"));
  expect_signature(end, kZip64EndSignature, "the zip64 end record");
  end.take(28, "zip64 end record");  // record size, versions, disk numbers, entries on this disk
  DirectoryRange range{};
  range.n_entries = end.read<std::uint64_t>("number of entries");
  range.size = end.read<std::uint64_t>("directory size");
  range.offset = end.read<std::uint64_t>("directory offset");
  return range;
}

DirectoryRange read_end(std::span<const std::byte> file, std::string_view where) {
  const std::size_t at = find_end_record(file, where);
  const bool has_zip64 =
      at >= kZip64LocatorSize && load<std::uint32_t>(&file[at - kZip64LocatorSize]) == kZip64LocatorSignature;
  if (has_zip64) return read_zip64_end(file, at - kZip64LocatorSize, where);
  ByteReader end(file, where, at);
  end.take(10, "zip end record");  // signature, disk numbers, entries on this disk
  DirectoryRange range{};
  range.n_entries = end.read<std::uint16_t>("number of entries");
  range.size = end.read<std::uint32_t>("directory size");
  range.offset = end.read<std::uint32_t>("directory offset");
  if (range.n_entries == kSaturated16 || range.size == kSaturated32 || range.offset == kSaturated32)
    throw InputError("{}: offset {}: the zip end record refers to a zip64 record, but there is none", where,
                     at);
  return range;
}

// Replaces the saturated fields of an entry, in this order, with the 64-bit values of its zip64 extra field.
void apply_zip64_extra(DirectoryEntry& entry, std::span<const std::byte> extra, std::string_view where) {
  ByteReader fields(extra, where);
  while (fields.remaining() >= 4) {
    const auto id = fields.read<std::uint16_t>("extra field");
    const auto size = fields.read<std::uint16_t>("extra field");
    ByteReader field(fields.take(size, "extra field"), where);
    if (id != kZip64Extra) continue;
    for (std::uint64_t* value : {&entry.size, &entry.compressed_size, &entry.local_offset})
      if (*value == kSaturated32) *value = field.read<std::uint64_t>("zip64 extra field");
  }
}

DirectoryEntry read_directory_entry(ByteReader& directory) {
  DirectoryEntry entry{};
  expect_signature(directory, kEntrySignature, "a zip directory entry");
  directory.take(4, "versions");
  entry.flags = directory.read<std::uint16_t>("flags");
  entry.method = directory.read<std::uint16_t>("method");
  directory.take(8, "time and checksum");
  entry.compressed_size = directory.read<std::uint32_t>("compressed size");
  entry.size = directory.read<std::uint32_t>("size");
  const auto name_size = directory.read<std::uint16_t>("name length");
  const auto extra_size = directory.read<std::uint16_t>("extra length");
  const auto comment_size = directory.read<std::uint16_t>("comment length");
  directory.take(8, "disk number and attributes");
  entry.local_offset = directory.read<std::uint32_t>("local header offset");
  entry.name = directory.text(name_size, "entry name");
  const std::string where = fmt::format("{}: entry '{}'", directory.where(), printable(entry.name));
  apply_zip64_extra(entry, directory.take(extra_size, "extra fields"), where);
  directory.take(comment_size, "comment");
  return entry;
}

// The bytes of an entry, which must lie before the directory. Sizes come from the directory: writers that
// stream leave them zero in the local header.
std::span<const std::byte> entry_bytes(const DirectoryEntry& entry,
                                       std::span<const std::byte> before_directory, std::string_view file) {
  const std::string where = fmt::format("{}: entry '{}'", file, printable(entry.name));
  if (entry.method != kStored)
    throw InputError(
        "{}: is compressed (method {}), expected a stored entry as torch.save writes it; unpack the zip "
        "file and pack it again without compression",
        where, entry.method);
  if ((entry.flags & kEncryptedFlag) != 0) throw InputError("{}: is encrypted", where);
  if (entry.compressed_size != entry.size)
    throw InputError("{}: stored in {} bytes, expected {}", where, entry.compressed_size, entry.size);
  ByteReader local(before_directory, where, entry.local_offset);
  expect_signature(local, kLocalSignature, "a local header");
  local.take(22, "local header");
  const auto name_size = local.read<std::uint16_t>("name length");
  const auto extra_size = local.read<std::uint16_t>("extra length");
  if (const auto name = local.text(name_size, "name"); name != entry.name)
    throw InputError("{}: the local header at offset {} names '{}'", where, entry.local_offset,
                     printable(name));
  local.take(extra_size, "extra fields");
  return local.take(entry.size, "data");
}

}  // namespace

ZipDirectory read_zip_directory(std::span<const std::byte> file, std::string_view where) {
  const DirectoryRange range = read_end(file, where);
  if (range.offset > file.size() || range.size > file.size() - range.offset)
    throw InputError("{}: truncated: the zip directory at [{}, +{}] reaches beyond the file of {} bytes",
                     where, range.offset, range.size, file.size());
  ByteReader reader(file.first(range.offset + range.size), where, range.offset);
  ZipDirectory directory;
  for (std::uint64_t i = 0; i < range.n_entries; ++i) {  // ends at the latest where the directory does
    const DirectoryEntry entry = read_directory_entry(reader);
    if (!directory.emplace(entry.name, entry_bytes(entry, file.first(range.offset), where)).second)
      throw InputError("{}: entry '{}' appears twice", where, printable(entry.name));
  }
  return directory;
}

}  // namespace deeptail
