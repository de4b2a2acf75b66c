// One file of a repository, from the hub to the cache's blobs.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "deeptail/watch.h"
#include "hub/http.h"
#include "hub/listing.h"
#include "hub/settings.h"

namespace deeptail {

// What all requests of a fetch share.
struct HubSession {
  Http& http;
  const HubSettings& settings;
  const HubName& name;

  std::string api_url(const std::string& revision) const;
  std::string file_url(const std::string& commit, const std::string& path) const;
};

// The revision's files; nothing when `watch` said to stop. Throws InputError for every answer but a
// listing.
std::optional<HubListing> ask_listing(const HubSession& session, const std::string& revision,
                                      const Watch& watch);

// Makes `blob` of the file, checked by size and hash. What an earlier call left unfinished beside it is
// continued. False when `watch`, which is told bytes of
// the file, said to stop. Throws InputError when it cannot be had; unless its content was
// wrong, the part that is there stays for the next call.
bool download_blob(const HubSession& session, const std::string& commit, const HubFile& file,
                   const std::filesystem::path& blob, const Watch& watch);

// Hash of a file's content, as HubFile::hash has it; nothing when told to stop.
std::optional<std::string> content_hash(const std::filesystem::path& path, const HubFile& file,
                                        const Watch& watch);
// The first byte that an answer to a request for a range holds: "bytes 5-9/10" is 5; nothing for other text.
std::optional<std::uint64_t> first_byte(std::string_view content_range);

}  // namespace deeptail
