#include "bench/export_run.h"

#include <cmath>
#include <map>

#include "bench/run_folder.h"

namespace deeptail {

namespace {

// Quoted where a comma, a quote or a line break asks for it (RFC 4180).
std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string out = "\"";
  for (const char c : text) out += c == '"' ? "\"\"" : std::string(1, c);
  return out + "\"";
}

}  // namespace

std::string csv_of(const Run& run) {
  std::string out =
      "item,model,dist,target,target_text,method,variant,replica,truth_count,truth_samples,truth,estimate,"
      "log_p,log_low,"
      "log_high,status,guarantee,forward,backward,score_evals,flops,forward_equivalents,cost_seconds,seconds,"
      "seed,"
      "calibration_seed,warnings\n";
  for (const RunItem& i : run.items) {
    out += fmt::format("{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}\n",
                       i.id, csv_field(i.model), csv_field(i.dist), fmt::join(i.target, " "),
                       csv_field(i.target_text), csv_field(i.method), csv_field(i.variant), i.replica,
                       i.truth_count, i.truth_samples, i.q(), std::exp(i.log_p), i.log_p, i.log_low,
                       i.log_high, i.status, i.guarantee, i.cost.forward, i.cost.backward, i.cost.score_evals,
                       i.cost.flops, i.cost.forward_equivalents, i.cost.seconds, i.seconds, i.seed,
                       i.calibration_seed, csv_field(fmt::format("{}", fmt::join(i.warnings, "; "))));
  }
  return out;
}

std::string jsonl_of(const std::string& folder) {
  std::map<std::string, std::string> lines;  // by item
  for (const std::string& path : shard_paths(folder)) {
    const std::string text = read_from(path, 0);
    for (const ShardScan::Entry& entry : scan_shard(text, path).committed)
      lines.try_emplace(entry.id, entry.data);
  }
  std::string out;
  for (const RunItem& item : read_run(folder).items) out += lines.at(item.id) + "\n";
  return out;
}

}  // namespace deeptail
