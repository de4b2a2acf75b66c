// Any bytes as a name, a ref, the hub's list of files and its fields: refused with an InputError, or read so that nothing leads
// outside the cache.
#include <cstdlib>

#include "hub/cache.h"
#include "hub/download.h"
#include "hub/listing.h"
#include "hub/safe_path.h"
#include "hub/tokenizer_repo.h"

namespace {

void need(bool good) {
  if (!good) std::abort();
}

void name(std::string_view text) {
  const deeptail::HubName parsed = deeptail::parse_hub_name(text);
  const deeptail::HubName again = deeptail::parse_hub_name(parsed.text());
  need(again.repo == parsed.repo && again.revision == parsed.revision && again.file == parsed.file);
  need(deeptail::is_safe_path(parsed.repo) && deeptail::is_safe_path(parsed.revision));
  const deeptail::RepoCache cache("/cache", parsed.repo);
  need(cache.ref(parsed.revision).lexically_normal() == cache.ref(parsed.revision));
}

void listing(std::string_view text) {
  const deeptail::HubListing read = deeptail::parse_listing(text, "fuzz");
  const deeptail::RepoCache cache("/cache", "a/b");
  for (const auto& [path, file] : read.files) {
    const auto place = (cache.snapshot(read.commit) / path).lexically_normal();
    need(place.string().starts_with(cache.snapshot(read.commit).string() + "/"));
    need(cache.blob(file.hash).lexically_normal().parent_path() == cache.folder() / "blobs");
  }
  for (const deeptail::HubFile& file : deeptail::wanted_files(read, {.repo = "a/b"}))
    need(read.files.contains(file.path));
  deeptail::shard_files(read, text, "fuzz");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto attempt = [](auto&& body) {
    try {
      body();
    } catch (const deeptail::InputError&) {
    }
  };
  attempt([&] { name("hf:" + std::string(text)); });
  attempt([&] { need(deeptail::parse_ref(text, "fuzz").size() == 40); });
  attempt([&] { listing(text); });
  attempt([&] {
    if (const auto tokenizer = deeptail::tokenizer_named_in(text, "fuzz")) name(tokenizer->text());
  });
  deeptail::first_byte(text);
  deeptail::origin_of(std::string(text));
  deeptail::hub_folder_name(std::string(text));
  return 0;
}
