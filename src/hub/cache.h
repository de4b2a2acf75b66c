// The cache of one repository, as huggingface_hub lays it out:
//
//   models--ORG--NAME/refs/REVISION           the commit that a branch or tag meant when it was fetched
//   models--ORG--NAME/blobs/HASH              a file: SHA-256 of a large one, git's SHA-1 of any other
//   models--ORG--NAME/snapshots/COMMIT/FILE   a link to its blob, or the file itself where there are no links
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace deeptail {

// The commit in a file of refs/; throws InputError for anything else.
std::string parse_ref(std::string_view text, std::string_view where);

class RepoCache {
 public:
  RepoCache(const std::filesystem::path& root, std::string_view repo);

  const std::filesystem::path& folder() const { return folder_; }
  std::filesystem::path ref(const std::string& revision) const { return folder_ / "refs" / revision; }
  std::filesystem::path blob(const std::string& hash) const { return folder_ / "blobs" / hash; }
  std::filesystem::path snapshot(const std::string& commit) const { return folder_ / "snapshots" / commit; }
  std::filesystem::path lock() const;

  // The commit that a revision means here: a branch or tag that was fetched before, or a commit that is
  // there, in full or its first digits. Throws InputError where such digits begin several.
  std::optional<std::string> commit_of(const std::string& revision) const;

 private:
  std::filesystem::path root_, folder_;
};

// Whether `revision` is this commit, in full or shortened, rather than a name for it.
bool is_commit_itself(std::string_view revision, std::string_view commit);

// What a snapshot lacks of what every model needs, for a sentence: "config.json", "the weights", a shard; ""
// where it is complete. file: the one that is the model, or "".
std::string missing_part(const std::filesystem::path& snapshot, const std::string& file);

}  // namespace deeptail
