// deeptail report: run folders as one HTML page and tables.
#include "deeptail/report.h"

#include <filesystem>

#include "cli/commands.h"
#include "cli/interrupt.h"
#include "cli/read_files.h"
#include "core/progress.h"
#include "core/write_file.h"
#include "report/page/page.h"

namespace deeptail::cli {

namespace {

struct ReportOptions {
  std::vector<std::string> runs;
  std::string out = "report.html", tables, figures, truth;
  bool compare = false, complete = false, quiet = false;
};

void write_comparison(const ReportOptions& options, std::vector<Run> runs) {
  if (runs.size() != 2) throw InputError("--compare: expected two run folders, found {}", runs.size());
  if (!options.tables.empty() || !options.figures.empty())
    throw InputError("--compare: {} writes those of one report; leave one of the two out",
                     options.tables.empty() ? "--figures" : "--tables");
  const CommonItems common = common_items(std::move(runs[0]), std::move(runs[1]));
  check_writable(options.out);
  ThreadPool pool;
  const Report a = make_report(common.a, pool), b = make_report(common.b, pool);
  const std::vector<Difference> differences = run_differences(common, a, pool);
  write_file(options.out, render_page(report_page(), comparison_json(common, a, b, differences)));
  if (options.quiet) return;
  fmt::print("{}: {} estimates in both runs, {} in the first alone, {} in the second alone\n", options.out,
             common.a.items.size(), common.only_a, common.only_b);
}

void write_all(const std::string& folder, const std::vector<TableFile>& files, const ReadFiles& reads) {
  for (const TableFile& file : files) {
    const std::string path = (std::filesystem::path(folder) / file.name).string();
    reads.refuse_output(path);
    write_file(path, file.text);
  }
}

// The runs and the counts. (The models are read, too, but need not be there.)
ReadFiles files_of_report(const ReportOptions& options) {
  ReadFiles reads;
  for (const std::string& folder : options.runs) reads.add_run(folder);
  if (!options.truth.empty()) reads.add_folder(options.truth, ".json");
  for (const std::string& model : list_models()) {
    reads.add_folder(model);
    reads.add_file(model);  // a GGUF file stands for itself
  }
  return reads;
}

void run_report(const ReportOptions& options) {
  const ReadFiles reads = files_of_report(options);
  reads.refuse_output(options.out);
  ProgressMeter meter(stderr, progress_style(stderr, options.quiet), {.label = "report"});
  std::vector<Run> runs;
  for (const std::string& folder : options.runs) {
    runs.push_back(read_run(folder));
    if (!options.truth.empty()) runs.back() = rescore_run(std::move(runs.back()), options.truth);
  }
  if (options.compare) return write_comparison(options, std::move(runs));
  Run run = join_runs(std::move(runs));
  if (options.complete && (run = complete_targets(std::move(run))).items.empty())
    throw InputError("--complete: no target has estimates of every setting yet");
  check_writable(options.out);
  for (const std::string& folder : {options.tables, options.figures})
    if (!folder.empty()) make_folder(folder);
  ThreadPool pool;
  const Report report = make_report(run, pool);
  meter.restart(
      {.label = "report: activations", .unit = "pairs", .total = report.models.size() * report.dists.size()});
  ReportExtras extras = whitening_of(report, pool, shown_until_interrupted(meter));
  for (const std::string& folder : options.runs) extras.details.merge(read_item_details(folder));
  write_file(options.out, render_page(report_page(), report_json(report, run, extras)));
  if (!options.tables.empty()) write_all(options.tables, report_tables(report), reads);
  if (!options.figures.empty()) write_all(options.figures, report_figures(report, run, extras), reads);
  if (options.quiet) return;
  meter.clear();
  const auto plural = [](std::size_t n) { return n == 1 ? "" : "s"; };
  fmt::print("{}: {} of {} estimates, {} setting{}, {} model{}, {} distribution{}\n", options.out,
             report.items, report.header.items, report.variants.size(), plural(report.variants.size()),
             report.models.size(), plural(report.models.size()), report.dists.size(),
             plural(report.dists.size()));
  if (report.without_truth > 0)
    fmt::print("{} of them not scored: their truth is not known\n", report.without_truth);
  if (report.unscored > 0)
    fmt::print("{} of them not scored: their truth was counted never, or always\n", report.unscored);
  if (!options.tables.empty()) fmt::print("{}: tables as CSV, Markdown and LaTeX\n", options.tables);
  if (!options.figures.empty()) fmt::print("{}: figures as SVG\n", options.figures);
}

}  // namespace

void add_report(CLI::App& app) {
  auto options = std::make_shared<ReportOptions>();
  CLI::App* command = app.add_subcommand("report", "Write a run as one HTML page, and its tables");
  command
      ->add_option(
          "run", options->runs,
          "Run folder, as written by deeptail bench run, or a packed one; several are shown as one run")
      ->required();
  command->add_option("--out", options->out, "HTML file to write")->capture_default_str();
  command->add_option("--tables", options->tables, "Folder to write tables to: CSV, Markdown, LaTeX");
  command->add_option("--figures", options->figures, "Folder to write the paper's figures to: SVG");
  command->add_option("--truth", options->truth,
                      "Folder of counts (MODEL-DIST.json) to score against, instead of those that chose the "
                      "targets");
  command->add_flag("--complete", options->complete,
                    "Only targets that every setting of their model has estimated");
  command->add_flag("--compare", options->compare, "Set two runs of the same items side by side");
  command->add_flag("--quiet", options->quiet, "Print nothing");
  command->callback([options] { run_report(*options); });
}

}  // namespace deeptail::cli
