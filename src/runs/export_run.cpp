#include "runs/export_run.h"

#include <cmath>

#include "core/csv.h"
#include "runs/run_folder.h"

namespace deeptail {

namespace {

// Empty where the truth is not known.
std::string truth_fields(const RunItem& i) {
  if (!i.truth_known()) return ",,";
  return fmt::format("{},{},{}", i.truth_count, i.truth_samples, i.q());
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
    out += fmt::format("{},{},{},{},{},{},{},{},", csv_field(i.id), csv_field(i.model), csv_field(i.dist),
                       fmt::join(i.target, " "), csv_field(i.target_text), csv_field(i.method),
                       csv_field(i.variant), i.replica);
    out += fmt::format("{},{},{},{},{},{},{},", truth_fields(i), std::exp(i.log_p), i.log_p, i.log_low,
                       i.log_high, csv_field(i.status), csv_field(i.guarantee));
    out += fmt::format("{},{},{},{},{},{},{},{},{},{}\n", i.cost.forward, i.cost.backward, i.cost.score_evals,
                       i.cost.flops, i.cost.forward_equivalents, i.cost.seconds, i.seconds, i.seed,
                       i.calibration_seed, csv_field(fmt::format("{}", fmt::join(i.warnings, "; "))));
  }
  return out;
}

RunSnapshot read_snapshot(const std::string& folder) {
  RunSnapshot out;
  out.run =
      read_run(folder, [&](const std::string& id, std::string_view line) { out.lines.emplace(id, line); });
  return out;
}

std::string jsonl_of(const RunSnapshot& snapshot) {
  std::string out;
  for (const RunItem& item : snapshot.run.items) out += snapshot.lines.at(item.id) + "\n";
  return out;
}

}  // namespace deeptail
