// What the environment says of the hub, in huggingface_hub's words.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

namespace deeptail {

struct HubSettings {
  std::filesystem::path cache;
  std::string endpoint;    // without a slash at the end
  std::string token;       // "" for none
  bool offline = false;    // never ask the network
  bool links = true;       // snapshots are made of links to blobs
  unsigned patience = 30;  // seconds without a byte until a transfer counts as broken
};

// The value of a variable, or null; std::getenv where nothing else is said.
using Environment = std::function<const char*(const char* name)>;

std::filesystem::path hub_cache_folder(const Environment& environment);
// Reads the token's file too. Throws InputError for values that cannot be used.
HubSettings hub_settings(const Environment& environment);
const char* process_environment(const char* name);

}  // namespace deeptail
