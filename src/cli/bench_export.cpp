// deeptail bench export
#include "cli/bench.h"
#include "cli/read_files.h"
#include "core/write_file.h"
#include "runs/export_run.h"

namespace deeptail::cli {

namespace {

struct ExportOptions {
  std::string run, csv, jsonl;
};

void bench_export(const ExportOptions& o) {
  if (o.csv.empty() && o.jsonl.empty()) throw InputError("expected --csv FILE or --jsonl FILE");
  if (!o.csv.empty() && !o.jsonl.empty()) check_distinct(o.csv, o.jsonl);
  ReadFiles reads;
  reads.add_run(o.run);
  for (const std::string& out : {o.csv, o.jsonl})
    if (!out.empty()) reads.refuse_output(out);
  const RunSnapshot snapshot = o.jsonl.empty() ? RunSnapshot{read_run(o.run), {}} : read_snapshot(o.run);
  const Run& run = snapshot.run;
  if (!o.csv.empty()) write_file(o.csv, csv_of(run));
  if (!o.jsonl.empty()) write_file(o.jsonl, jsonl_of(snapshot));
  fmt::print("{}: {} of {} items{}\n", o.run, run.items.size(), run.header.items,
             run.items.size() < run.header.items ? "; the run is not finished" : "");
}

}  // namespace

void add_bench_export(CLI::App& bench) {
  CLI::App* sub = bench.add_subcommand("export", "Writes a run as one table");
  const auto o = std::make_shared<ExportOptions>();
  sub->add_option("run", o->run, "Folder of a run")->required();
  sub->add_option("--csv", o->csv, "One line per item, with the fields that tables need");
  sub->add_option("--jsonl", o->jsonl, "One line per item, with all of the estimate");
  sub->callback([o] { bench_export(*o); });
}

}  // namespace deeptail::cli
