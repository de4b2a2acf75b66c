#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>
#include <utility>

#include "core/file_lock.h"
#include "core/json.h"
#include "core/write_file.h"
#include "hub/cache.h"
#include "hub/download.h"
#include "hub/fetch.h"
#include "hub/tokenizer_repo.h"

namespace deeptail {

namespace {

namespace fs = std::filesystem;

constexpr auto kLockPoll = std::chrono::milliseconds(100);

// Whether `path` leads to a regular file of this size.
bool is_whole(const fs::path& path, const HubFile& file) {
  std::error_code error;
  return fs::is_regular_file(path, error) && fs::file_size(path, error) == file.size && !error;
}

// The snapshot's file: a link to the blob, whole or not at all; the blob itself where links are not wanted or
// not to be had.
void place_file(const fs::path& blob, const fs::path& place, bool links) {
  make_folder(place.parent_path().string());
  const fs::path target = blob.lexically_relative(place.parent_path());
  const std::string temporary = fmt::format("{}.tmp-{}", place.string(), ::getpid());
  ::unlink(temporary.c_str());
  const bool linked = links && ::symlink(target.c_str(), temporary.c_str()) == 0;
  if (::rename(linked ? temporary.c_str() : blob.c_str(), place.c_str()) == 0) return;
  const int reason = errno;
  if (linked) ::unlink(temporary.c_str());
  throw InputError("{}: cannot write: {}", place.string(), std::strerror(reason));
}

// A fetch under way: what it told, and how far it is.
class Fetch {
 public:
  Fetch(const HubSession& session, const RepoCache& cache, const Watch& watch)
      : session_(session), cache_(cache), watch_(watch) {}

  bool tell(std::uint64_t of_this_file) const {
    Progress progress = progress_of(done_ + of_this_file, total_, before_);
    progress.note = note_;
    return goes_on(watch_, progress);
  }
  bool wait_for(LockFile& lock);
  // False when told to stop.
  bool take(const HubListing& listing, const std::vector<HubFile>& files);
  HubFetch result() const { return fetched_; }

 private:
  bool take_file(const std::string& commit, const HubFile& file);
  bool download(const std::string& commit, const HubFile& file, const fs::path& blob);

  const HubSession& session_;
  const RepoCache& cache_;
  const Watch& watch_;
  std::string note_;
  std::uint64_t done_ = 0, total_ = 0, before_ = 0;  // bytes; before: that were there
  HubFetch fetched_;
};

// Another process may be fetching the same: what it has got need not come twice.
bool Fetch::wait_for(LockFile& lock) {
  note_ = "another fetch is at work on it";
  while (lock.lock(0) == LockFile::Result::kHeldByOther) {
    if (!tell(0)) return false;
    std::this_thread::sleep_for(kLockPoll);
  }
  note_ = "";
  return true;
}

bool Fetch::take(const HubListing& listing, const std::vector<HubFile>& files) {
  for (const HubFile& file : files) total_ += file.size;
  return std::all_of(files.begin(), files.end(),
                     [&](const HubFile& file) { return take_file(listing.commit, file); });
}

bool Fetch::take_file(const std::string& commit, const HubFile& file) {
  note_ = file.path;
  if (!tell(0)) return false;
  const fs::path place = cache_.snapshot(commit) / file.path, blob = cache_.blob(file.hash);
  const bool there = is_whole(place, file) || is_whole(blob, file);
  if (there)
    before_ += file.size;
  else if (!download(commit, file, blob))
    return false;
  if (!is_whole(place, file)) place_file(blob, place, session_.settings.links);
  done_ += file.size;
  return tell(0);
}

bool Fetch::download(const std::string& commit, const HubFile& file, const fs::path& blob) {
  make_folder(blob.parent_path().string());
  bool begun = false;
  const auto told = [&](const Progress& of_file) {
    if (!std::exchange(begun, true)) before_ += of_file.done;  // what an earlier fetch left
    return tell(of_file.done);
  };
  if (!download_blob(session_, commit, file, blob, told)) return false;
  ++fetched_.files;
  fetched_.bytes += file.size;
  return true;
}

void write_ref(const RepoCache& cache, const std::string& revision, const std::string& commit) {
  if (is_commit_itself(revision, commit)) return;
  const fs::path ref = cache.ref(revision);
  make_folder(ref.parent_path().string());
  write_file(ref.string(), commit);
}

bool take_all(Fetch& fetch, const HubListing& listing, const HubName& name, const fs::path& snapshot) {
  const auto first = wanted_files(listing, name);
  if (!fetch.take(listing, first)) return false;
  if (!first.back().path.ends_with(".index.json")) return true;
  const InputFile index((snapshot / first.back().path).string());
  return fetch.take(listing, shard_files(listing, index.text(), index.path()));
}

// A repository's files, then its ref.
std::optional<HubFetch> fetch_one(Http& http, const HubSettings& settings, const HubName& name, bool refresh,
                                  const Watch& watch) {
  const RepoCache cache(settings.cache, name.repo);
  const HubSession session{http, settings, name};
  Fetch fetch(session, cache, watch);
  make_folder(cache.lock().parent_path().string());
  LockFile lock(cache.lock().string());
  if (!fetch.wait_for(lock)) return std::nullopt;
  const auto known = refresh ? std::nullopt : cache.commit_of(name.revision);
  const auto listing =
      ask_listing(session, known.value_or(name.revision), [&](const Progress&) { return fetch.tell(0); });
  if (!listing) return std::nullopt;
  if (known && listing->commit != *known)
    throw InputError("model {}: asked for commit {}, the server answers with {}", name.text(), *known,
                     listing->commit);
  const fs::path snapshot = cache.snapshot(listing->commit);
  if (!take_all(fetch, *listing, name, snapshot)) return std::nullopt;
  write_ref(cache, name.revision, listing->commit);
  HubFetch result = fetch.result();
  result.model = {listing->commit, (name.file.empty() ? snapshot : snapshot / name.file).string()};
  return result;
}

}  // namespace

std::optional<HubFetch> fetch_with(Http& http, const HubSettings& settings, const HubName& name, bool refresh,
                                   const Watch& watch) {
  auto fetched = fetch_one(http, settings, name, refresh, watch);
  if (!fetched || !name.file.empty()) return fetched;
  const InputFile config((fs::path(fetched->model.path) / "config.json").string());
  const auto tokenizer = tokenizer_named_in(config.text(), config.path());
  if (!tokenizer || fs::exists(fs::path(fetched->model.path) / "tokenizer.json")) return fetched;
  const auto other = fetch_one(http, settings, *tokenizer, refresh, watch);
  if (!other) return std::nullopt;
  fetched->files += other->files;
  fetched->bytes += other->bytes;
  return fetched;
}

std::optional<HubFetch> fetch_from_hub(const HubName& name, bool refresh, const Watch& watch) {
  const HubSettings settings = hub_settings(process_environment);
  if (settings.offline) {  // what is there will do
    if (const RepoCache cache(settings.cache, name.repo);
        refresh || !cache.commit_of(name.revision) ||
        !missing_part(cache.snapshot(*cache.commit_of(name.revision)), name.file).empty())
      throw InputError("model {}: cannot be fetched while HF_HUB_OFFLINE or TRANSFORMERS_OFFLINE is set",
                       name.text());
    return HubFetch{.model = find_in_hub_cache(name)};
  }
  return fetch_with(*curl_http(settings.patience), settings, name, refresh, watch);
}

}  // namespace deeptail
