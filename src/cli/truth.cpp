// deeptail truth: count what a model says; merge, show, compare and import counts.
#include <filesystem>
#include <limits>
#include <utility>

#include "cli/commands.h"
#include "cli/interrupt.h"
#include "cli/output.h"
#include "cli/parse.h"
#include "cli/read_files.h"
#include "cli/truth_report.h"
#include "core/data_places.h"
#include "core/json.h"
#include "core/nearest.h"
#include "core/progress.h"
#include "core/screen_text.h"
#include "core/stopwatch.h"
#include "core/tell.h"
#include "core/write_file.h"
#include "deeptail/truth.h"
#include "truth/truth.h"

namespace deeptail::cli {

namespace {

constexpr double kNoLimit = std::numeric_limits<double>::infinity();

struct CountOptions {
  std::string model, dist, samples, out, device = "cpu", keep_hits;
  std::uint64_t seed = 1, first = 0;
  double seconds = kNoLimit;
  std::optional<double> near_tie;
  bool quiet = false;
};

struct FileOptions {
  std::vector<std::string> files;
  std::string out, model, dist;
  bool json = false;
};

// Inputs per second of this run, for the last line.
std::string rate_text(const ProgressState& state) {
  return fmt::format("{} inputs/s", short_count(static_cast<double>(state.done - state.done_before) /
                                                std::max(1e-9, state.seconds)));
}

// The last line of a run; throws when there is more to do.
void report(const ProgressState& state, CountOutcome outcome, const std::string& out) {
  if (outcome == CountOutcome::kStopped)
    throw Stopped(
        interrupted() ? kInterrupted : kBudgetSpent,
        fmt::format("stopped after {} of {} inputs, {}; saved in {}.partial, the same command continues",
                    state.done, state.total, rate_text(state), out));
  fmt::print("{}: {} inputs counted, {}\n", out, state.total, rate_text(state));
}

void run_count(const CountOptions& o) {
  const std::uint64_t samples = parse_count(o.samples, "--samples");
  if (!(o.seconds > 0.0)) throw InputError("--seconds {}: expected a positive number", o.seconds);
  if (o.near_tie && !(*o.near_tie >= 0.0)) throw InputError("--near-tie {}: expected 0 or more", *o.near_tie);
  ReadFiles reads;
  reads.add_subject(o.model, o.dist);
  reads.refuse_output(o.out);
  ProgressMeter meter(stderr, progress_style(stderr, o.quiet), {.label = fmt::format("loading {}", o.model)});
  const LoadedModel model = load_model(o.model);
  const Distribution dist = load_distribution(o.dist, model);
  const Provenance p = provenance_of(model, dist);
  const bool on_cuda = o.device == "cuda";
  if (!on_cuda && o.device != "cpu")
    throw InputError("--device {}: expected cpu or cuda", screen_text(o.device));
  std::optional<HitStore> hits;
  if (!o.keep_hits.empty()) hits.emplace(model.config().d_vocab, parse_count(o.keep_hits, "--keep-hits"));
  HitStore* const kept = hits ? &*hits : nullptr;
  const TruthRequest request{.provenance = p,
                             .source = on_cuda && o.near_tie == 0.0 ? kFp16Source : "deeptail",
                             .seed = o.seed,
                             .first = o.first,
                             .samples = samples,
                             .out = o.out,
                             .hits = kept};
  ThreadPool pool;
  const CountInputs count = on_cuda ? count_on_cuda(model.transformer, dist, o.seed, o.near_tie, kept)
                                    : count_on_cpu(model.transformer, dist, o.seed, pool, kept);
  catch_interrupts();
  const Stopwatch stopwatch;
  ProgressState state{.label = fmt::format("{} {}", p.model, p.dist), .unit = "inputs", .total = samples};
  const auto begin = [&](std::uint64_t before) {
    meter.clear();
    if (before > 0 && !o.quiet) tell(stderr, "continuing after {} inputs\n", before);
    state.done = state.done_before = before;
    meter.restart(state);
  };
  bool begun = false;
  const Watch watch = [&](const Progress& p) {
    if (!std::exchange(begun, true)) begin(p.before);
    meter.follow(p);
    return !interrupted() && stopwatch.seconds() < o.seconds;
  };
  const CountOutcome outcome = count_truth(model.config().d_vocab, count, request, watch);
  if (outcome == CountOutcome::kAlreadyFinished) {
    meter.clear();
    fmt::print("{}: already counted, nothing to do\n", o.out);
    return;
  }
  if (outcome == CountOutcome::kFinished) meter.update(samples);
  state = meter.state();
  meter.clear();
  report(state, outcome, o.out);
}

void refuse_own_files(const FileOptions& o) {
  ReadFiles reads;
  for (const std::string& file : o.files) reads.add_file(file);
  reads.refuse_output(o.out);
}

// A file, or the name of one in the folders called truth: dt-1l-hex.
std::string file_called(const std::string& name) {
  if (std::filesystem::exists(name)) return name;
  for (const std::string& file_name : {name, name + ".json"})
    if (const auto path = find_truth(file_name)) return *path;
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& place : data_places("truth"))
    for (const auto& entry : std::filesystem::directory_iterator(place, error))
      names.push_back(entry.path().stem().string());
  throw InputError(
      "{}: no such file, and none of this name in $DEEPTAIL_HOME/truth, ./truth or beside the program; "
      "`deeptail truth` counts one{}",
      name, did_you_mean(name, names));
}

// Inputs that were kept are merged where all files have some.
void merge_kept(const FileOptions& o, const Truth& merged) {
  std::vector<std::string> paths;
  std::string without;
  for (const std::string& file : o.files)
    if (std::filesystem::exists(hits_path(file)))
      paths.push_back(hits_path(file));
    else if (without.empty())
      without = file;
  if (paths.empty()) return;
  if (!without.empty()) {
    tell(stderr, "note: inputs were kept for some of these counts and not for {}: they are not merged\n",
         screen_text(without));
    return;
  }
  const TruthHits hits = merge_hits(paths);
  check_hits_of(hits, "inputs beside the files", merged);
  write_file(hits_path(o.out), to_jsonl(hits));
}

void merge_events(const FileOptions& o) {
  const EventCounts merged = merge_event_counts(o.files);
  write_file(o.out, to_json(merged));
  fmt::print("{}: {} texts of {} files\n", o.out, merged.samples(), o.files.size());
}

void merge(const FileOptions& o) {
  refuse_own_files(o);
  if (is_event_counts(o.files.at(0))) return merge_events(o);
  const Truth merged = merge_truth(o.files);
  merge_kept(o, merged);
  write_file(o.out, to_json(merged));
  fmt::print("{}: {} inputs of {} files\n", o.out, merged.samples(), o.files.size());
  for (const TruthRange& range : merged.ranges)
    if (range.source != merged.ranges[0].source) {
      tell(stderr,
           "note: counted by different programs ({} and {}), whose arithmetic may differ at near-ties\n",
           screen_text(merged.ranges[0].source), screen_text(range.source));
      break;
    }
}

void import(const FileOptions& o) {
  refuse_own_files(o);
  const Truth truth = import_truth(o.files.at(0), o.model, o.dist);
  write_file(o.out, to_json(truth));
  fmt::print("{}: {} inputs, {} tokens seen\n", o.out, truth.samples(), truth.counts.size());
}

void add_file_commands(CLI::App& truth) {
  const auto o = std::make_shared<FileOptions>();
  CLI::App* sub = truth.add_subcommand("merge", "Add up counts of different inputs; overlaps are refused");
  sub->add_option("FILES", o->files, "Truth files, two or more")->required()->expected(2, 1 << 20);
  sub->add_option("--out", o->out, "File to write")->required();
  sub->callback([o] { merge(*o); });

  sub = truth.add_subcommand("show", "What was counted: tokens seen, decades, frequent and rare tokens");
  sub->add_option("FILE", o->files, "Truth file, or the name of one that is shipped: dt-1l-hex")
      ->required()
      ->expected(1);
  sub->add_flag("--json", o->json, "Machine-readable output");
  sub->callback([o] {
    const std::string path = file_called(o->files.at(0));
    if (is_event_counts(path)) return show_events(read_event_counts(path), o->json);
    show_truth(read_truth(path), o->json);
  });

  sub = truth.add_subcommand("compare",
                             "Do two independent counts agree? And what did the first one never see?");
  sub->add_option("FILES", o->files, "Two truth files, or names")->required()->expected(2);
  sub->add_flag("--json", o->json, "Machine-readable output");
  sub->callback(
      [o] { show_comparison(read_truth(file_called(o->files.at(0))), read_truth(file_called(o->files.at(1))), o->json);
  });

  sub =
      truth.add_subcommand("import", "Counts kept as one tensor (ARC's frequencies32-*.pt) as a truth file");
  sub->add_option("FILE", o->files, "A .pt, .npy or .safetensors file with one integer tensor")
      ->required()
      ->expected(1);
  sub->add_option("--model-name", o->model, "Name of the model that was counted")->required();
  sub->add_option("--dist-name", o->dist, "Name of its input distribution")->required();
  sub->add_option("--out", o->out, "File to write")->required();
  sub->callback([o] { import(*o); });
}

}  // namespace

void add_truth(CLI::App& app) {
  CLI::App* truth =
      app.add_subcommand("truth", "Count what a model says on sampled inputs; merge, show, compare counts");
  const auto o = std::make_shared<CountOptions>();
  truth->add_option("--model", o->model, "Folder or name of a model, or hf:ORG/NAME");
  truth->add_option("--dist", o->dist, "Name or file of a distribution");
  truth->add_option("--samples", o->samples, "How many inputs, such as 2^24, 1e6 or 1000000");
  truth->add_option("--seed", o->seed, "Seed")->capture_default_str();
  truth->add_option("--first", o->first, "Number of the first input")->capture_default_str();
  truth->add_option("--out", o->out, "File to write; until it is complete, FILE.partial holds what is done");
  truth->add_option("--seconds", o->seconds,
                    "Stop after so many seconds (exit code 4); the same command continues");
  truth->add_option("--device", o->device, "cpu, or cuda where it is built in")->capture_default_str();
  truth->add_option("--near-tie", o->near_tie,
                    "cuda: inputs whose two best logits are this close in fp16 are decided again, nearly as "
                    "exactly as in fp32; 0: none; without it, ten times fp16's rounding error");
  truth->add_option("--keep-hits", o->keep_hits,
                    "Keep the numbers of the first so many inputs after which each token was said, in "
                    "FILE.hits");
  truth->add_flag("--quiet", o->quiet, "No progress");
  truth->require_subcommand(0, 1);
  add_file_commands(*truth);
  truth->callback([truth, o] {
    if (!truth->get_subcommands().empty()) return;
    for (const char* flag : {"--model", "--dist", "--samples", "--out"})
      if (truth->count(flag) == 0) throw CLI::RequiredError(flag);
    run_count(*o);
  });
}

}  // namespace deeptail::cli
