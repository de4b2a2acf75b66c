// Shards: scanning, appending.
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <optional>

#include "core/json.h"
#include "core/regular_file.h"
#include "runs/run_folder.h"

namespace deeptail {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kDataStart = R"({"item":")", kCommitStart = R"({"commit":")",
                           kCrcStart = R"(","crc32":)";
constexpr std::size_t kIdLength = 16;

// CRC-32 of zlib and PNG: polynomial 0xedb88320, reflected.
std::uint32_t crc32(std::string_view text) {
  static const std::array<std::uint32_t, 256> table = [] {
    std::array<std::uint32_t, 256> t{};
    for (std::uint32_t i = 0; i < 256; ++i) {
      std::uint32_t c = i;
      for (int bit = 0; bit < 8; ++bit) c = (c >> 1) ^ (c & 1 ? 0xedb88320u : 0u);
      t[i] = c;
    }
    return t;
  }();
  std::uint32_t c = ~0u;
  for (const char byte : text) c = table[(c ^ static_cast<unsigned char>(byte)) & 255u] ^ (c >> 8);
  return ~c;
}

bool is_hex_id(std::string_view text) {
  return text.size() == kIdLength && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

// The id that a data line begins with, or nothing.
std::optional<std::string_view> id_of_data(std::string_view line) {
  if (!line.starts_with(kDataStart)) return std::nullopt;
  const std::string_view id = line.substr(kDataStart.size(), kIdLength);
  if (!is_hex_id(id)) return std::nullopt;
  return id;
}

struct CommitRecord {
  std::string_view id;
  std::uint32_t crc;
};
std::optional<CommitRecord> parse_commit(std::string_view line) {
  if (!line.starts_with(kCommitStart) || !line.ends_with('}')) return std::nullopt;
  CommitRecord record{line.substr(kCommitStart.size(), kIdLength), 0};
  if (!is_hex_id(record.id)) return std::nullopt;
  line.remove_prefix(kCommitStart.size() + kIdLength);
  if (!line.starts_with(kCrcStart)) return std::nullopt;
  line.remove_prefix(kCrcStart.size());
  line.remove_suffix(1);
  const auto [stop, error] = std::from_chars(line.data(), line.data() + line.size(), record.crc);
  if (error != std::errc() || stop != line.data() + line.size()) return std::nullopt;
  return record;
}

// Why a line is not the commit record of `data`; "" when it is.
std::string what_is_wrong(std::string_view line, std::string_view data) {
  const auto record = parse_commit(line);
  if (!record) return fmt::format("neither an item nor a commit record: {}", printable(line, 40));
  const auto id = id_of_data(data);
  if (!id || *id != record->id)
    return fmt::format("a commit record of item {} without its data before it", record->id);
  if (crc32(data) != record->crc)
    return fmt::format("the checksum of item {} is {}, expected {}", record->id, crc32(data), record->crc);
  return "";
}

// Of the item, without parsing the whole line: the first key of this name is the item's own.
double seconds_of(std::string_view data) {
  constexpr std::string_view kKey = "\"seconds\":";
  const std::size_t at = data.find(kKey);
  double seconds = 0.0;
  if (at != std::string_view::npos)
    std::from_chars(data.data() + at + kKey.size(), data.data() + data.size(), seconds);
  return seconds;
}

std::string reason() { return std::strerror(errno); }

}  // namespace

std::string commit_line(std::string_view id, std::string_view data) {
  return fmt::format("{}{}{}{}}}", kCommitStart, id, kCrcStart, crc32(data));
}

ShardScan scan_shard(std::string_view text, std::string_view where) {
  ShardScan scan;
  std::string_view pending;  // the last data line, until its commit record
  std::string problem;       // forgiven unless a good commit record follows: then it is no torn tail
  std::size_t at = 0, line_number = 0;
  for (std::size_t newline; (newline = text.find('\n', at)) != std::string_view::npos; at = newline + 1) {
    const std::string_view line = text.substr(at, newline - at);
    ++line_number;
    if (id_of_data(line)) {
      if (!pending.empty()) ++scan.torn;
      pending = line;
      continue;
    }
    const std::string wrong = what_is_wrong(line, pending);
    if (wrong.empty() && problem.empty()) {
      scan.committed.push_back({std::string(*id_of_data(pending)), pending, line_number - 1});
      scan.end = newline + 1;
      pending = {};
    } else if (wrong.empty()) {
      throw InputError(
          "{}: {}; the file is damaged: restore it from a copy, or delete it to have its items estimated "
          "again",
          where, problem);
    } else if (problem.empty()) {
      problem = fmt::format("line {}: {}", line_number, wrong);
    }
  }
  if (scan.end < text.size()) ++scan.torn;
  return scan;
}

std::string read_from(const std::string& path, std::uint64_t from) {
  const RegularFile file(path);
  std::string text;
  std::vector<std::byte> block(1 << 20);
  for (std::size_t n = block.size(); n == block.size();) {
    n = file.read(from + text.size(), block);
    text.append(reinterpret_cast<const char*>(block.data()), n);
  }
  return text;
}

std::vector<std::string> shard_paths(const std::string& folder) {
  std::vector<std::string> paths;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (name.starts_with("shard-") && name.ends_with(".jsonl")) paths.push_back(entry->path().string());
  }
  if (error) throw InputError("{}: cannot list: {}", folder, error.message());
  std::sort(paths.begin(), paths.end());
  return paths;
}

void CommittedItems::refresh() {
  for (const std::string& path : shard_paths(folder_)) {
    std::uint64_t& seen = seen_[path];
    const std::string added = read_from(path, seen);
    const ShardScan scan = scan_shard(added, seen == 0 ? path : fmt::format("{} after byte {}", path, seen));
    for (const ShardScan::Entry& entry : scan.committed) {
      const auto [taken, is_new] = seconds_.emplace(entry.id, seconds_of(entry.data));
      if (is_new) in_order_.push_back(&*taken);
    }
    seen += scan.end;
  }
}

ShardWriter::ShardWriter(const std::string& folder, const std::string& name) {
  for (int attempt = 1; fd_ < 0; ++attempt) {
    const std::string suffix = attempt == 1 ? "" : fmt::format("-{}", attempt);
    if (try_open(fmt::format("{}/shard-{}{}.jsonl", folder, name, suffix))) break;
  }
  const auto give_up = [&] {
    const std::string why = reason();
    ::close(fd_);
    throw InputError("{}: cannot prepare for writing: {}", path_, why);
  };
  try {
    size_ = scan_shard(read_from(path_, 0), path_).end;
  } catch (...) {
    ::close(fd_);
    throw;
  }
  if (::ftruncate(fd_, static_cast<off_t>(size_)) != 0) give_up();
  // The name itself must be on the disk before what it names counts.
  const int dir = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (dir < 0 || ::fsync(dir) != 0) give_up();
  ::close(dir);
}

ShardWriter::~ShardWriter() {
  if (fd_ >= 0) ::close(fd_);  // and with it the lock
}

// False when another process writes there.
bool ShardWriter::try_open(const std::string& path) {
  path_ = path;
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0666);
  if (fd < 0 && errno == ELOOP)
    throw InputError("{}: is a symbolic link, expected a file of the run's own; remove the link", path);
  if (fd < 0) throw InputError("{}: cannot open for writing: {}", path, reason());
  if (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
    const int why = errno;
    ::close(fd);
    if (why == EWOULDBLOCK) return false;
    throw InputError("{}: cannot lock: {}", path, std::strerror(why));
  }
  fd_ = fd;
  return true;
}

void ShardWriter::write_and_sync(std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = ::write(fd_, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) break;
    text.remove_prefix(static_cast<std::size_t>(n));
  }
  if (text.empty() && ::fsync(fd_) == 0) return;
  const std::string why = reason();
  // Best effort: whoever comes next cuts off what has no commit record anyway.
  [[maybe_unused]] const int cut = ::ftruncate(fd_, static_cast<off_t>(size_));
  throw InputError(
      "{}: cannot write: {}; what was committed before is safe, and running again continues there", path_,
      why);
}

void ShardWriter::append(const std::string& id, std::string_view data) {
  const std::string data_text = fmt::format("{}\n", data), commit_text = commit_line(id, data) + "\n";
  write_and_sync(data_text);
  write_and_sync(commit_text);
  size_ += data_text.size() + commit_text.size();
}

}  // namespace deeptail
