#include "hub/download.h"

#include <algorithm>
#include <charconv>
#include <span>
#include <vector>

#include "core/json.h"
#include "core/memory.h"
#include "core/regular_file.h"
#include "core/sha1.h"
#include "core/sha256.h"
#include "hub/partial_file.h"
#include "hub/refusals.h"

namespace deeptail {

namespace {

namespace fs = std::filesystem;

constexpr int kMostBreaks = 5;  // of one file's transfer, each after some progress
constexpr std::size_t kHashBlock = std::size_t{1} << 20;

// False when told to stop.
bool add_file(BlockHash& hash, const RegularFile& file, const Watch& watch) {
  std::vector<std::byte> block(std::min(file.size(), kHashBlock));
  for (std::size_t at = 0; at < file.size(); at += block.size()) {
    const auto part = std::span(block).first(std::min(block.size(), file.size() - at));
    file.read_all(at, part);
    hash.add(part);
    if (!goes_on(watch, {})) return false;
  }
  return true;
}

// What an answer of 200 or 206 has of the wrong kind; "" for one that can be used. partial: brought to where the
// answer begins.
std::string mistake_in(const HttpHead& head, PartialFile& partial) {
  if (const std::string_view coding = head.field("content-encoding"); !coding.empty() && coding != "identity")
    return fmt::format("sent it as {}, which was not asked for", printable(coding, 40));
  if (head.status == 200) {
    if (partial.size() > 0) partial.restart();  // it does not continue
  } else if (first_byte(head.field("content-range")) != partial.size()) {
    return fmt::format("was asked for the bytes from {} on and sent {}", partial.size(),
                       printable(head.field("content-range"), 60));
  }
  return "";
}

struct Attempt {
  HttpResult result;
  std::string mistake;
};

// One request for the rest of a file.
Attempt continue_file(const HubSession& session, const HttpRequest& request, const HubFile& file,
                      PartialFile& partial, const Watch& watch) {
  Attempt attempt;
  bool begun = false;
  const auto sink = [&](const HttpHead& head, std::string_view piece) {
    if (head.status != 200 && head.status != 206) return true;  // some page about an error
    if (!std::exchange(begun, true)) attempt.mistake = mistake_in(head, partial);
    if (attempt.mistake.empty() && piece.size() > file.size - partial.size()) {
      attempt.mistake = fmt::format("sends more than the {} bytes that it said", file.size);
      partial.restart();
    }
    if (!attempt.mistake.empty()) return false;
    partial.append(piece);
    return true;
  };
  const Watch asked = [&](const Progress&) { return goes_on(watch, progress_of(partial.size(), file.size)); };
  attempt.result = get_with_redirects(session.http, request, sink, asked);
  return attempt;
}

std::string what_of(const HubSession& session, const HubFile& file) {
  return fmt::format("{}: {}", session.name.text(), printable(file.path, 200));
}

// Fills `partial`; false when told to stop.
bool complete_file(const HubSession& session, const std::string& commit, const HubFile& file,
                   PartialFile& partial, const Watch& watch) {
  HttpRequest request{.url = session.file_url(commit, file.path), .token = session.settings.token};
  for (int breaks = 0; partial.size() < file.size;) {
    const std::uint64_t before = request.from = partial.size();
    const auto [result, mistake] = continue_file(session, request, file, partial, watch);
    const std::string server = origin_of(result.url);
    if (!mistake.empty()) throw InputError("model {}: {} {}", what_of(session, file), server, mistake);
    if (result.stopped) return false;
    const bool good = result.head.status == 200 || result.head.status == 206;
    if (!good && result.head.status != 0 && result.broken.empty())
      refuse_answer(result, session.name, what_of(session, file), session.settings);
    if (partial.size() == file.size || (partial.size() > before && ++breaks <= kMostBreaks)) continue;
    throw InputError(
        "model {}: {} of {} bytes came from {}: {}; what is there is kept, and fetching again continues",
        what_of(session, file), partial.size(), file.size, server,
        result.broken.empty() ? "it ended there" : printable(result.broken, 200));
  }
  return true;
}

void check_room(const HubSession& session, const HubFile& file, const PartialFile& partial) {
  std::error_code error;
  const fs::space_info space = fs::space(partial.path().parent_path(), error);
  const std::uint64_t needed = file.size - std::min(file.size, partial.size());
  if (!error && space.available < needed)
    throw InputError("model {}: needs {} more in {}, which has room for {}", what_of(session, file),
                     bytes_text(static_cast<double>(needed)), partial.path().parent_path().string(),
                     bytes_text(static_cast<double>(space.available)));
}

}  // namespace

std::optional<std::uint64_t> first_byte(std::string_view content_range) {
  constexpr std::string_view kUnit = "bytes ";
  if (!content_range.starts_with(kUnit)) return std::nullopt;
  content_range.remove_prefix(kUnit.size());
  std::uint64_t first = 0;
  const char* end = content_range.data() + content_range.size();
  const auto [rest, error] = std::from_chars(content_range.data(), end, first);
  if (error != std::errc() || rest == end || *rest != '-') return std::nullopt;
  return first;
}

std::optional<std::string> content_hash(const fs::path& path, const HubFile& file, const Watch& watch) {
  const RegularFile content(path.string());
  if (file.hash.size() == 64) {
    Sha256 hash;
    return add_file(hash, content, watch) ? std::optional(hash.hex()) : std::nullopt;
  }
  const std::string head = fmt::format("blob {}", content.size());
  Sha1 hash;
  hash.add(std::as_bytes(std::span(head.c_str(), head.size() + 1)));  // with its NUL
  return add_file(hash, content, watch) ? std::optional(hash.hex()) : std::nullopt;
}

bool download_blob(const HubSession& session, const std::string& commit, const HubFile& file,
                   const fs::path& blob, const Watch& watch) {
  PartialFile partial(blob.string() + ".deeptail-incomplete");
  if (partial.size() > file.size) partial.restart();
  check_room(session, file, partial);
  if (!complete_file(session, commit, file, partial, watch)) return false;
  const auto found = content_hash(partial.path(), file, [&](const Progress&) {
    return goes_on(watch, progress_of(partial.size(), file.size));
  });
  if (!found) return false;
  if (*found != file.hash) {
    partial.remove();
    throw InputError("model {}: the content is not what the hub lists: expected hash {}, found {}; try again",
                     what_of(session, file), file.hash, *found);
  }
  partial.become(blob);
  return true;
}

}  // namespace deeptail
