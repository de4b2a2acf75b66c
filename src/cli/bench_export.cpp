// deeptail bench export
#include "cli/bench.h"
#include "cli/read_files.h"
#include "core/write_file.h"
#include "runs/packed_run.h"

namespace deeptail::cli {

namespace {

struct ExportOptions {
  std::string run, csv, jsonl, packed;
};

std::vector<std::string> outputs(const ExportOptions& o) {
  std::vector<std::string> out{o.csv, o.jsonl, o.packed};
  std::erase(out, "");
  return out;
}

void bench_export(const ExportOptions& o) {
  const std::vector<std::string> outs = outputs(o);
  if (outs.empty()) throw InputError("expected --csv FILE, --jsonl FILE or --packed FILE");
  for (std::size_t i = 0; i < outs.size(); ++i)
    for (std::size_t j = 0; j < i; ++j) check_distinct(outs[j], outs[i]);
  ReadFiles reads;
  reads.add_run(o.run);
  for (const std::string& out : outs) reads.refuse_output(out);
  const bool lines = !o.jsonl.empty() || !o.packed.empty();
  const RunSnapshot snapshot = lines ? read_snapshot(o.run) : RunSnapshot{read_run(o.run), {}};
  const Run& run = snapshot.run;
  if (!o.csv.empty()) write_file(o.csv, csv_of(run));
  if (!o.jsonl.empty()) write_file(o.jsonl, jsonl_of(snapshot));
  if (!o.packed.empty()) write_file(o.packed, packed_run(snapshot));
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
  sub->add_option("--packed", o->packed,
                  "The run as one small file, without inputs and levels; read like the folder");
  sub->callback([o] { bench_export(*o); });
}

}  // namespace deeptail::cli
