// deeptail bench tune

#include "cli/bench.h"
#include "cli/interrupt.h"
#include "cli/parse.h"
#include "cli/read_files.h"
#include "core/progress.h"
#include "core/write_file.h"
#include "deeptail/estimators.h"
#include "deeptail/tune.h"
#include "truth/truth.h"

namespace deeptail::cli {

namespace {

struct TuneOptions {
  TuneConfig config = {.models = {"dt-1l", "dt-2l", "dt-4l"},
                       .dists = {"hex", "camel", "colon", "if", "caps", "english", "spanish", "icl"}};
  std::string samples = "2^16", out, table;
  std::size_t threads = 0;
  bool quiet = false;
};

void print_table(const TuneConfig& config, const TuneResults& results) {
  for (const std::string& method : config.methods) {
    fmt::print("{}: mean |ln p/q| (zeros), by temperature; * is chosen\n", method);
    fmt::print("{:<16}", "");
    for (const double t : config.grid) fmt::print("{:>12}", t);
    fmt::print("\n");
    for (const std::string& model : config.models)
      for (const std::string& dist : config.dists) {
        TuneResults row;
        for (const double t : config.grid)
          if (const auto found = results.find({model, dist, method, t}); found != results.end())
            row.insert(*found);
        if (row.empty()) continue;
        const double best = choose(row).front().cell.temperature;
        fmt::print("{:<16}", model + " " + dist);
        for (const double t : config.grid) {
          const auto found = row.find({model, dist, method, t});
          fmt::print("{:>12}", found == row.end() ? "-"
                                                  : fmt::format("{:.2f} ({}){}", found->second.loss,
                                                                found->second.zeros, t == best ? "*" : " "));
        }
        fmt::print("\n");
      }
  }
}

// What the search reads; its own files are read and written.
ReadFiles files_of_search(const TuneConfig& config) {
  ReadFiles reads;
  for (const std::string& model : config.models)
    for (const std::string& dist : config.dists) {
      reads.add_subject(model, dist);
      if (const auto truth = find_truth(truth_name(model, dist))) reads.add_file(*truth);
    }
  return reads;
}

void run_bench_tune(TuneOptions o) {
  o.config.samples = parse_count(o.samples, "--samples");
  o.config.validate();
  const ReadFiles reads = files_of_search(o.config);
  for (const std::string& out : {o.out, o.table})
    if (!out.empty()) reads.refuse_output(out);
  if (!o.table.empty()) {  // mistakes are told before the search, not after it
    check_writable(o.table);
    if (!o.out.empty()) check_distinct(o.out, o.table);
    read_temperatures(o.table);
  }
  catch_interrupts();
  ProgressMeter meter(stderr, progress_style(stderr, o.quiet), {.label = "bench tune", .unit = "cells"});
  ThreadPool pool(o.threads);
  const TuneResults results = run_tune_search(o.config, o.out, pool, shown_until_interrupted(meter));
  meter.clear();
  print_table(o.config, results);
  if (interrupted()) throw Stopped(kInterrupted, "interrupted; the same command continues");
  if (!o.table.empty()) update_temperatures(o.table, under_own_names(results));
}

}  // namespace

void add_bench_tune(CLI::App& bench) {
  CLI::App* sub =
      bench.add_subcommand("tune", "Choose the temperatures of itgis and mhis on frequent targets");
  const auto o = std::make_shared<TuneOptions>();
  const auto list = [&](const char* flag, std::vector<std::string>& names, const char* what) {
    sub->add_option(flag, names, what)->delimiter(',')->capture_default_str();
  };
  list("--models", o->config.models, "Names, separated by commas");
  list("--dists", o->config.dists, "Names, separated by commas");
  list("--methods", o->config.methods, "Those to tune, separated by commas");
  sub->add_option("--temperatures", o->config.grid, "The grid")->delimiter(',')->capture_default_str();
  sub->add_option("--targets-per-pair", o->config.targets_per_pair, "Targets with q in [1e-5, 1e-3]")
      ->capture_default_str();
  sub->add_option("--samples", o->samples, "Per estimate")->capture_default_str();
  sub->add_option("--seed", o->config.seed, "Seed")->capture_default_str();
  sub->add_option("--out", o->out,
                  "File that results are appended to; a search that was ended continues from it");
  sub->add_option("--table", o->table,
                  "Table of temperatures to write the choice into (suites/temperatures.json)");
  sub->add_option("--threads", o->threads, "Threads, one temperature of one pair each; 0: one per core")
      ->capture_default_str();
  sub->add_flag("--quiet", o->quiet, "No progress");
  sub->callback([o] { run_bench_tune(*o); });
}

}  // namespace deeptail::cli
