#include "hub/settings.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <initializer_list>
#include <string_view>

#include "core/json.h"
#include "deeptail/core.h"

namespace deeptail {

namespace {

namespace fs = std::filesystem;

std::string value_of(const Environment& environment, const char* name) {
  const char* value = environment(name);
  return value == nullptr ? "" : value;
}

bool is_on(const Environment& environment, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    std::string value = value_of(environment, name);
    std::transform(value.begin(), value.end(), value.begin(),
                   [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; });
    for (const char* yes : {"1", "ON", "YES", "TRUE"})
      if (value == yes) return true;
  }
  return false;
}

fs::path home(const Environment& environment) {
  const std::string folder = value_of(environment, "HOME");
  if (folder.empty())
    throw InputError("the HuggingFace cache: there is no home folder ($HOME); set HF_HOME to where it is");
  return folder;
}

// A shell's ~ may arrive as it is, from a file of settings.
fs::path expanded(const Environment& environment, const std::string& path) {
  if (path == "~") return home(environment);
  return path.starts_with("~/") ? home(environment) / path.substr(2) : fs::path(path);
}

fs::path hf_home(const Environment& environment) {
  if (const std::string folder = value_of(environment, "HF_HOME"); !folder.empty())
    return expanded(environment, folder);
  if (const std::string folder = value_of(environment, "XDG_CACHE_HOME"); !folder.empty())
    return expanded(environment, folder) / "huggingface";
  return home(environment) / ".cache" / "huggingface";
}

std::string trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  const std::size_t first = text.find_first_not_of(kSpace);
  if (first == text.npos) return "";
  return std::string(text.substr(first, text.find_last_not_of(kSpace) - first + 1));
}

// What is no plain word would end the header early, or begin another.
std::string checked_token(std::string token, std::string_view where) {
  if (std::any_of(token.begin(), token.end(), [](char c) { return c <= ' ' || c >= 0x7f; }))
    throw InputError("{}: expected a token, one word of ASCII, found something else", where);
  return token;
}

std::string find_token(const Environment& environment) {
  if (is_on(environment, {"HF_HUB_DISABLE_IMPLICIT_TOKEN"})) return "";
  for (const char* name : {"HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"})
    if (const std::string token = trimmed(value_of(environment, name)); !token.empty())
      return checked_token(token, name);
  const std::string given = value_of(environment, "HF_TOKEN_PATH");
  const fs::path path = given.empty() ? hf_home(environment) / "token" : expanded(environment, given);
  std::error_code error;
  if (!fs::exists(path, error)) return "";
  return checked_token(trimmed(InputFile(path.string()).text()), path.string());
}

std::string find_endpoint(const Environment& environment) {
  std::string endpoint = trimmed(value_of(environment, "HF_ENDPOINT"));
  if (endpoint.empty()) return "https://huggingface.co";
  while (endpoint.ends_with('/')) endpoint.pop_back();
  const bool plain =
      std::all_of(endpoint.begin(), endpoint.end(), [](char c) { return c > ' ' && c < 0x7f; });
  if (!plain || !(endpoint.starts_with("https://") || endpoint.starts_with("http://")))
    throw InputError("HF_ENDPOINT: expected an address such as https://huggingface.co, found {}",
                     printable(endpoint));
  return endpoint;
}

unsigned find_patience(const Environment& environment, unsigned otherwise) {
  const std::string text = value_of(environment, "HF_HUB_DOWNLOAD_TIMEOUT");
  if (text.empty()) return otherwise;
  unsigned seconds = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (error != std::errc() || end != text.data() + text.size() || seconds == 0 || seconds > 86400)
    throw InputError("HF_HUB_DOWNLOAD_TIMEOUT: expected seconds, a whole number from 1 to 86400, found {}",
                     printable(text));
  return seconds;
}

}  // namespace

const char* process_environment(const char* name) { return std::getenv(name); }

fs::path hub_cache_folder(const Environment& environment) {
  for (const char* name : {"HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"})
    if (const std::string folder = value_of(environment, name); !folder.empty())
      return expanded(environment, folder);
  return hf_home(environment) / "hub";
}

HubSettings hub_settings(const Environment& environment) {
  HubSettings settings;
  settings.cache = hub_cache_folder(environment);
  settings.endpoint = find_endpoint(environment);
  settings.token = find_token(environment);
  settings.offline = is_on(environment, {"HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"});
  settings.links = !is_on(environment, {"HF_HUB_DISABLE_SYMLINKS"});
  settings.patience = find_patience(environment, settings.patience);
  return settings;
}

}  // namespace deeptail
