// What the hub says of a revision: GET /api/models/ORG/NAME/revision/REVISION?blobs=true answers
//
//   {"sha": COMMIT, "siblings": [{"rfilename": "config.json", "size": 7, "blobId": SHA-1 of the git blob,
//                                 "lfs": {"sha256": SHA-256, "size": 7}}, ...]}       lfs: of large files only
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "deeptail/hub.h"

namespace deeptail {

struct HubFile {
  std::string path;  // within the repository; safe (safe_path.h)
  std::uint64_t size = 0;
  std::string hash;  // 64 hex digits: SHA-256; 40: git's SHA-1, which begins with "blob SIZE\0"
};

struct HubListing {
  std::string commit;
  std::map<std::string, HubFile> files;
};
HubListing parse_listing(std::string_view json, std::string_view where);

// What a model needs of it, small files first: config.json, the tokenizer, and last the weights:
// model.safetensors or its index (whose shards come later), pytorch_model.bin or its index, or the .pth file of
// TransformerLens. Throws InputError where there is no model, and names what there is.
std::vector<HubFile> wanted_files(const HubListing& listing, const HubName& name);
// The shards that an index names.
std::vector<HubFile> shard_files(const HubListing& listing, std::string_view index, const std::string& where);

}  // namespace deeptail
