// deeptail bench tune
#include <cerrno>
#include <cmath>
#include <cstring>
#include <fstream>
#include <mutex>

#include "bench/truth.h"
#include "cli/bench.h"
#include "cli/interrupt.h"
#include "cli/parse.h"
#include "cli/read_files.h"
#include "core/file_lock.h"
#include "core/json.h"
#include "core/progress.h"
#include "core/write_file.h"
#include "deeptail/estimators.h"
#include "deeptail/tune.h"

namespace deeptail::cli {

namespace {

struct TuneOptions {
  TuneConfig config = {.models = {"dt-1l", "dt-2l", "dt-4l"},
                       .dists = {"hex", "camel", "colon", "if", "caps", "english", "spanish", "icl"}};
  std::string samples = "2^16", out, table;
  std::size_t threads = 0;
  bool quiet = false;
};

// A model, a distribution and the truth about them.
struct TunePair {
  Transformer model;
  Distribution dist;
  Truth truth;
};

Truth load_truth(const std::string& model, const std::string& dist, const LoadedModel& loaded,
                 const Distribution& inputs) {
  const std::string name = fmt::format("{}-{}.json", model, dist);
  const auto path = find_truth(name);
  if (!path)
    throw InputError("truth/{}: not found; count it with `deeptail truth --model {} --dist {}`", name, model,
                     dist);
  Truth truth = read_truth(*path);
  check_counts_of(truth, *path, provenance_of(loaded, inputs), loaded.config().d_vocab);
  return truth;
}

std::map<std::pair<std::string, std::string>, TunePair> load_pairs(const TuneConfig& config) {
  std::map<std::pair<std::string, std::string>, TunePair> pairs;
  for (const std::string& model : config.models) {
    const LoadedModel loaded = load_model(model);
    for (const std::string& dist : config.dists) {
      Distribution inputs = load_distribution(dist, loaded);
      Truth truth = load_truth(model, dist, loaded, inputs);
      pairs.emplace(std::pair(model, dist), TunePair{loaded.transformer, std::move(inputs), std::move(truth)});
    }
  }
  return pairs;
}

std::string text_of(const std::string& path) {
  return std::filesystem::exists(path) ? std::string(MappedFile(path).text()) : std::string();
}

// Ready to append whole lines: what a killed run left of its last one is cut off.
std::ofstream open_results(const std::string& path) {
  if (const std::string text = text_of(path); !text.empty() && text.back() != '\n')
    write_file(path, std::string_view(text).substr(0, text.rfind('\n') + 1));
  std::ofstream file(path, std::ios::app);
  if (!file) throw InputError("{}: cannot open for writing: {}", path, std::strerror(errno));
  return file;
}

// Runs the cells that are not known yet, one thread each; every result is appended as soon as it is there.
void run_cells(const TuneOptions& o, TuneResults& results) {
  std::vector<TuneCell> pending;
  for (const TuneCell& cell : tune_cells(o.config))
    if (!results.contains(cell)) pending.push_back(cell);
  if (pending.empty()) return;
  const std::size_t known = results.size();
  ProgressMeter meter(stderr, progress_style(stderr, o.quiet),
                      {.label = "bench tune",
                       .unit = "cells",
                       .done = known,
                       .total = known + pending.size(),
                       .done_before = known});
  const auto pairs = load_pairs(o.config);
  std::ofstream file;
  if (!o.out.empty()) file = open_results(o.out);
  std::mutex mutex;
  ThreadPool pool(o.threads);
  pool.for_each_block(pending.size(), [&](std::size_t i, std::size_t) {
    if (interrupted()) return;
    const TuneCell& cell = pending[i];
    const TunePair& pair = pairs.at({cell.model, cell.dist});
    ThreadPool one(1);
    const auto result = run_tune_cell({pair.model, pair.dist, pair.truth}, o.config, cell, one,
                                      [] { return !interrupted(); });
    if (!result) return;
    const std::lock_guard lock(mutex);
    results[cell] = *result;
    if (!o.out.empty() && !(file << result_line(o.config, cell, *result) << std::flush))
      throw InputError("{}: cannot write: {}; the same command continues", o.out, std::strerror(errno));
    meter.update(results.size());
  });
}

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

std::vector<ChosenTemperature> read_table(const std::string& path) {
  const std::string old = text_of(path);
  return old.empty() ? std::vector<ChosenTemperature>() : parse_temperatures(old, path);
}

// Pairs of an earlier table that this search says nothing about stay.
void write_table(const std::string& path, const TuneResults& results) {
  std::map<std::tuple<std::string, std::string, std::string>, ChosenTemperature> rows;
  const auto keep = [&](const ChosenTemperature& c) { rows[{c.cell.model, c.cell.dist, c.cell.method}] = c; };
  for (const ChosenTemperature& c : read_table(path)) keep(c);
  for (const ChosenTemperature& c : choose(results)) keep(c);
  std::vector<ChosenTemperature> all;
  for (const auto& [key, row] : rows) all.push_back(row);
  write_file(path, to_json(all));
}

// What the search reads; its own files are read and written.
ReadFiles files_of_search(const TuneConfig& config) {
  ReadFiles reads;
  for (const std::string& model : config.models)
    for (const std::string& dist : config.dists) {
      reads.add_subject(model, dist);
      if (const auto truth = find_truth(fmt::format("{}-{}.json", model, dist))) reads.add_file(*truth);
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
    read_table(o.table);
  }
  catch_interrupts();
  TuneResults results;
  std::optional<WorkLock> lock;  // two searches into one file would mix their lines
  if (!o.out.empty()) lock.emplace(o.out);
  if (!o.out.empty()) results = parse_tune_results(text_of(o.out), o.config, o.out);
  run_cells(o, results);
  print_table(o.config, results);
  if (interrupted()) throw Stopped(kInterrupted, "interrupted; the same command continues");
  if (!o.table.empty()) write_table(o.table, results);
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
