// Any bytes as a shard, as a data line with a good checksum, and as run.json: refused with an InputError, or
// read the same again.
#include <cstdlib>

#include "core/gzip.h"
#include "runs/packed_run.h"
#include "runs/run_folder.h"

namespace {

void shard(std::string_view text) {
  const deeptail::ShardScan scan = deeptail::scan_shard(text, "fuzz");
  if (scan.end > text.size() || (scan.end < text.size() && scan.torn == 0)) std::abort();
  const deeptail::ShardScan again = deeptail::scan_shard(text.substr(0, scan.end), "fuzz");
  if (again.end != scan.end || again.committed.size() != scan.committed.size()) std::abort();
  for (const auto& entry : scan.committed) deeptail::parse_data_line(entry.data, "fuzz");
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
  attempt([&] { shard(text); });
  attempt([&] { deeptail::parse_data_line(text, "fuzz"); });
  attempt([&] {
    const std::string json = deeptail::to_json(deeptail::parse_run_header(text, "fuzz"));
    if (deeptail::to_json(deeptail::parse_run_header(json, "fuzz")) != json) std::abort();
  });
  attempt([&] { deeptail::unpack_run(text, "fuzz"); });
  attempt([&] {
    const deeptail::PackedText run = deeptail::unpack_run(deeptail::gzipped(text), "fuzz");
    if (run.header + "\n" + run.shard != text) std::abort();
  });
  const std::string line = "{\"item\":\"0123456789abcdef" + std::string(text.substr(0, text.find('\n')));
  attempt([&] {
    shard(line + "\n" + deeptail::commit_line("0123456789abcdef", line) + "\n" + std::string(text));
  });
  return 0;
}
