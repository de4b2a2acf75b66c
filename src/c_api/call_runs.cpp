// Benchmark runs, reports, the library's test of itself, and what losses need besides arrays.
#include <algorithm>
#include <cmath>
#include <filesystem>

#include "c_api/calls.h"
#include "core/write_file.h"
#include "deeptail/closed_form.h"
#include "deeptail/loss.h"
#include "deeptail/report.h"
#include "runs/run_suite.h"
#ifdef DEEPTAIL_HAS_PAGE
#include "report/page/page.h"
#endif

namespace deeptail::c_api {

namespace {

std::string_view name_of(RunOutcome::Kind kind) {
  using Kind = RunOutcome::Kind;
  return kind == Kind::kFinished          ? "finished"
         : kind == Kind::kAlreadyFinished ? "already_finished"
         : kind == Kind::kStopped         ? "stopped"
                                          : "left_to_others";
}

std::string_view the_page() {
#ifdef DEEPTAIL_HAS_PAGE
  return report_page();
#else
  throw InputError("this build has no page for reports: it was made without node and npm");
#endif
}

std::vector<double> numbers_at(const JsonNode& arguments, const char* key) {
  return arguments.at(key).numbers();
}

void check_same_size(std::span<const double> a, std::span<const double> b) {
  if (a.size() != b.size() || a.empty())
    throw InputError("expected two lists of the same length, found {} and {} numbers", a.size(), b.size());
}

}  // namespace

OrderedJson run_bench(const JsonNode& arguments, const Watch& watch) {
  expect_keys(arguments, {"suite", "out", "only", "shard", "shards", "device", "threads"});
  const std::string device_name = text_or(arguments, "device", "cpu");
  const auto device = value_named<Device>(device_name);
  if (!device) arguments.at("device").fail_expected("cpu or cuda");
  RunOptions options{.out = arguments.at("out").text(), .only = texts_or_none(arguments, "only")};
  options.n_shards = arguments.has("shards") ? arguments.at("shards").count(1, 1 << 20) : 1;
  options.shard = arguments.has("shard") ? arguments.at("shard").count(1, options.n_shards) : 1;
  Suite suite = read_suite(arguments.at("suite").text(), *device);
  for (const SuiteVariant& v : suite.variants) require_device(v.method.device);
  const Grid grid = build_grid(std::move(suite));
  ThreadPool pool(threads_of(arguments));
  const RunOutcome outcome = run_suite(grid, options, pool, watch);
  return {{"outcome", name_of(outcome.kind)}, {"done", outcome.done}, {"total", outcome.total}};
}

OrderedJson read_run_folder(const JsonNode& arguments, const Watch&) {
  expect_keys(arguments, {"folder"});
  OrderedJson items = OrderedJson::array();
  std::map<std::string, std::string> lines;
  const Run run = read_run(arguments.at("folder").text(),
                           [&](const std::string& id, std::string_view line) { lines[id] = line; });
  for (const RunItem& item : run.items) items.push_back(OrderedJson(parse_json(lines[item.id], item.id)));
  return {{"header", OrderedJson(parse_json(to_json(run.header), "run.json"))},
          {"torn", run.torn},
          {"items", items}};
}

OrderedJson write_report(const JsonNode& arguments, const Watch& watch) {
  expect_keys(arguments, {"runs", "out", "tables", "truth"});
  const std::string out = text_or(arguments, "out", ""), truth = text_or(arguments, "truth", "");
  const std::vector<std::string> folders = texts_or_none(arguments, "runs");
  std::vector<Run> runs;
  for (const std::string& folder : folders) {
    runs.push_back(read_run(folder));
    if (!truth.empty()) runs.back() = rescore_run(std::move(runs.back()), truth);
  }
  if (runs.empty()) throw InputError("runs: expected at least one folder, found none");
  const Run run = join_runs(std::move(runs));
  ThreadPool pool;
  const Report report = make_report(run, pool);
  if (!out.empty()) {
    ReportExtras extras = whitening_of(report, pool, watch);
    for (const std::string& folder : folders) extras.details.merge(read_item_details(folder));
    write_file(out, render_page(the_page(), report_json(report, run, extras)));
  }
  const std::string tables = text_or(arguments, "tables", "");
  if (!tables.empty()) make_folder(tables);
  OrderedJson texts = OrderedJson::object();
  for (const TableFile& file : report_tables(report)) {
    if (!tables.empty()) write_file((std::filesystem::path(tables) / file.name).string(), file.text);
    texts[file.name] = file.text;
  }
  return {{"items", report.items},
          {"without_truth", report.without_truth},
          {"unscored", report.unscored},
          {"tables", texts}};
}

OrderedJson run_selftest(const JsonNode& arguments, const Watch& watch) {
  expect_keys(arguments, {"seed", "threads"});
  constexpr double kMostDeviations = 4.0;  // as the program's
  ThreadPool pool(threads_of(arguments));
  OrderedJson rows = OrderedJson::array();
  bool passed = true;
  const auto problems = selftest_problems();
  std::uint64_t done = 0;
  for (const ClosedFormProblem& problem : problems) {
    const ClosedFormResult result = run_closed_form(problem, {.seed = count_or(arguments, "seed", 1)}, pool);
    const double sd = std::max(result.summary.relative_sd, result.summary.genealogy_relative_sd);
    const double deviations = (result.summary.log_p - problem.log_p) / sd;
    const bool good = std::abs(deviations) < kMostDeviations;
    passed = passed && good;
    rows.push_back({{"event", problem.name},
                    {"truth", std::exp(problem.log_p)},
                    {"estimate", std::exp(result.summary.log_p)},
                    {"deviations", json_of(deviations)},
                    {"passed", good}});
    if (!goes_on(watch, progress_of(++done, problems.size()))) break;
  }
  return {{"passed", passed && done == problems.size()}, {"events", rows}};
}

OrderedJson calibrate_pairs(const JsonNode& arguments, const Watch&) {
  expect_keys(arguments, {"truth", "estimate"});
  const auto q = numbers_at(arguments, "truth"), p = numbers_at(arguments, "estimate");
  check_same_size(q, p);
  ThreadPool pool;
  const Calibration c = calibrate(q, p, pool);
  return {{"a", c.a},
          {"b", c.b},
          {"c", c.c},
          {"loss_uncalibrated", json_of(c.loss_uncalibrated)},
          {"loss_fitted", json_of(c.loss_fitted)},
          {"loss_leave_one_out", json_of(c.loss_leave_one_out)},
          {"leave_one_out", c.leave_one_out}};
}

OrderedJson noise_floor_of(const JsonNode& arguments, const Watch&) {
  expect_keys(arguments, {"counts", "samples", "alpha", "gamma", "epsilon"});
  SpbParameters s;
  s.alpha = number_or(arguments, "alpha", s.alpha);
  s.gamma = number_or(arguments, "gamma", s.gamma);
  s.epsilon = number_or(arguments, "epsilon", s.epsilon);
  s.validate();
  const std::uint64_t samples = arguments.at("samples").count(2, std::uint64_t{1} << 62);
  std::vector<std::uint64_t> counts;
  for (const JsonNode& n : arguments.at("counts").elements()) counts.push_back(n.count(1, samples - 1));
  const NoiseFloor floor = noise_floor(s, counts, samples);
  return {{"mean", json_of(floor.mean)}, {"sd", json_of(floor.sd)}};
}

OrderedJson bootstrap_pairs(const JsonNode& arguments, const Watch&) {
  expect_keys(arguments, {"a", "b", "resamples", "seed"});
  const auto a = numbers_at(arguments, "a"), b = numbers_at(arguments, "b");
  check_same_size(a, b);
  BootstrapConfig config{.seed = count_or(arguments, "seed", 1)};
  config.resamples = count_or(arguments, "resamples", config.resamples);
  ThreadPool pool;
  const PairedBootstrap found = paired_bootstrap(a, b, config, pool);
  return {{"difference", found.difference},
          {"ci95", {found.ci95[0], found.ci95[1]}},
          {"a_beats_b", found.a_beats_b}};
}

}  // namespace deeptail::c_api
