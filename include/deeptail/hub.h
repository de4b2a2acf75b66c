// Models of the HuggingFace hub: hf:ORG/NAME[@REVISION][:FILE].
//
// find_model and load_model take such names. They live in the user's cache, which deeptail shares with huggingface_hub. Finding one there asks no
// network; fetch_from_hub does, and nothing else.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "deeptail/core.h"
#include "deeptail/watch.h"

namespace [[gnu::visibility("default")]] deeptail {

struct HubName {
  std::string repo;               // "org/name", or "name" for some of the oldest
  std::string revision = "main";  // a branch, a tag, or a commit, which may be shortened
  std::string file = {};          // one file that is the model, such as model-q8_0.gguf; "" for a folder

  std::string text() const;  // as it was written
};
bool is_hub_name(std::string_view text);  // begins with hf:
HubName parse_hub_name(std::string_view text);
// The repository of a model with a name of its own: gelu-1l, gelu-2l, gelu-4l.
std::optional<HubName> hub_alias(std::string_view name);

struct HubModel {
  std::string commit;  // 40 hex digits
  std::string path;    // its folder, or its file where the name says one
};
// In the cache: $HF_HUB_CACHE, $HF_HOME/hub, $XDG_CACHE_HOME/huggingface/hub or ~/.cache/huggingface/hub.
// Throws InputError with Hint::kFetch where it, or a part that every model needs, is not there.
HubModel find_in_hub_cache(const HubName& name);

// The names of all models that the cache has whole, as find_in_hub_cache takes them: branches and tags that were
// fetched, and their GGUF files. Asks no network; sorted by repository.
std::vector<std::string> list_hub_cache();

// What results call a model that lies in such a folder: NAME@ and the commit's first digits, or the name of its
// own. Nothing for other folders.
std::optional<std::string> hub_folder_name(const std::string& folder);

// The tokenizer.json of the repository that such a folder's config.json names as its tokenizer (the paper's
// models have none of their own), where the cache has it.
std::optional<std::string> hub_tokenizer_of(const std::string& folder);

struct HubFetch {
  HubModel model;
  std::size_t files = 0;    // that were not there before
  std::uint64_t bytes = 0;  // of them
};
// Downloads what the cache does not have: config, tokenizer (of another repository where config.json says so)
// and weights, or the one file. A revision that the
// cache knows keeps its commit unless `refresh`. Progress counts bytes. Nothing is returned when `watch` said
// to stop; then, and after an error, the next call continues where this one ended.
std::optional<HubFetch> fetch_from_hub(const HubName& name, bool refresh = false, const Watch& watch = {});

}  // namespace deeptail
