#include "runs/packed_run.h"

#include <filesystem>

#include "core/gzip.h"
#include "core/json.h"
#include "runs/run_folder.h"

namespace deeptail {

namespace {

// Of an estimate's JSON, what parse_data_line reads.
std::string short_estimate(std::string_view data) {
  const Json line = parse_json(data, "a line of the run");
  const Json& whole = line.at("estimate");
  OrderedJson out;
  for (const char* key : {"log10_p", "ci95", "status", "guarantee", "seed", "cost", "warnings"})
    out[key] = whole.at(key);
  return json_text(out);
}

}  // namespace

bool is_packed_run(const std::string& path) {
  std::error_code error;
  return std::filesystem::is_regular_file(path, error);
}

std::string packed_run(const RunSnapshot& snapshot) {
  std::string text = json_text(parse_json(to_json(snapshot.run.header), "run.json")) + "\n";
  for (const RunItem& item : snapshot.run.items) {
    const std::string data = data_line(item, short_estimate(snapshot.lines.at(item.id)));
    text += data + "\n" + commit_line(item.id, data) + "\n";
  }
  return gzipped(text);
}

PackedText unpack_run(std::string_view bytes, std::string_view where) {
  if (!is_compressed(bytes))
    throw InputError("{}: expected a run's folder or a packed run, found another file", where);
  const std::string text = gunzipped(bytes, where);
  const std::size_t end = text.find('\n');
  if (end == std::string::npos) throw InputError("{}: expected a run, found no lines", where);
  return {text.substr(0, end), text.substr(end + 1)};
}

}  // namespace deeptail
