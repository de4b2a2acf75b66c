// deeptail truth: count what a model says.
#include <limits>
#include <utility>

#include "cli/commands.h"
#include "cli/event_flags.h"
#include "cli/interrupt.h"
#include "cli/parse.h"
#include "cli/read_files.h"
#include "cli/truth_report.h"
#include "core/json.h"
#include "core/progress.h"
#include "core/screen_text.h"
#include "core/stopwatch.h"
#include "core/tell.h"
#include "deeptail/truth.h"
#include "events/event_spec.h"

namespace deeptail::cli {

namespace {

constexpr double kNoLimit = std::numeric_limits<double>::infinity();

struct CountOptions {
  std::string model, samples, out, device = "cpu", keep_hits, events;
  PromptOptions prompts;
  EventOptions event;
  std::uint64_t seed = 1, first = 0;
  double seconds = kNoLimit;
  std::optional<double> near_tie;
  bool quiet = false;
};

// Inputs per second of this run, for the last line.
std::string rate_text(const ProgressState& state) {
  return fmt::format(
      "{} {}/s",
      short_count(static_cast<double>(state.done - state.done_before) / std::max(1e-9, state.seconds)),
      state.unit);
}

// The last line of a run; throws when there is more to do.
void report(const ProgressState& state, CountOutcome outcome, const std::string& out) {
  if (outcome == CountOutcome::kStopped)
    throw Stopped(
        interrupted() ? kInterrupted : kBudgetSpent,
        fmt::format("stopped after {} of {} {}, {}; saved in {}.partial, the same command continues",
                    state.done, state.total, state.unit, rate_text(state), out));
  fmt::print("{}: {} {} counted, {}\n", out, state.total, state.unit, rate_text(state));
}

// Counts under a watch that shows progress and ends at an interrupt or when the time is up.
void count_watched(const CountOptions& o, ProgressMeter& meter, ProgressState state,
                   const std::function<CountOutcome(const Watch&)>& count) {
  catch_interrupts();
  const Stopwatch stopwatch;
  const std::uint64_t samples = state.total;
  const auto begin = [&](std::uint64_t before) {
    meter.clear();
    if (before > 0 && !o.quiet) tell(stderr, "continuing after {} {}\n", before, state.unit);
    state.done = state.done_before = before;
    meter.restart(state);
  };
  bool begun = false;
  const Watch watch = [&](const Progress& p) {
    if (!std::exchange(begun, true)) begin(p.before);
    meter.follow(p);
    return !interrupted() && stopwatch.seconds() < o.seconds;
  };
  const CountOutcome outcome = count(watch);
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

void check_count_flags(const CountOptions& o) {
  if (!(o.seconds > 0.0)) throw InputError("--seconds {}: expected a positive number", o.seconds);
  if (o.near_tie && !(*o.near_tie >= 0.0)) throw InputError("--near-tie {}: expected 0 or more", *o.near_tie);
  if (o.device != "cpu" && o.device != "cuda")
    throw InputError("--device {}: expected cpu or cuda", screen_text(o.device));
}

void run_count(const CountOptions& o) {
  const std::uint64_t samples = parse_count(o.samples, "--samples");
  check_count_flags(o);
  if (const std::vector<std::string> unused = o.event.unused(); !unused.empty())
    throw InputError("{}, which is what is counted where no event is asked about", unused.front());
  ReadFiles reads;
  reads.add_subject(o.model, o.prompts.dist);
  reads.refuse_output(o.out);
  ProgressMeter meter(stderr, progress_style(stderr, o.quiet), {.label = fmt::format("loading {}", o.model)});
  const LoadedModel model = load_model(o.model);
  const Distribution dist = load_distribution(o.prompts.dist, model);
  const Provenance p = provenance_of(model, dist);
  const bool on_cuda = o.device == "cuda";
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
  count_watched(
      o, meter, {.label = fmt::format("{} {}", p.model, p.dist), .unit = "inputs", .total = samples},
      [&](const Watch& watch) { return count_truth(model.config().d_vocab, count, request, watch); });
}

// The events of the flags and of a file.
std::vector<EventCounts::Item> items_of(const CountOptions& o) {
  std::vector<std::string> events;
  if (!o.events.empty()) {
    const InputFile file(o.events);
    events = parse_events(file.text(), o.events);
  }
  for (const EventSpec& spec : specs_of(o.event))
    for (const std::string& one : parse_events(json_text(json_of(spec)), "the event")) events.push_back(one);
  std::vector<EventCounts::Item> items;
  for (const std::string& event : events) {
    for (const EventCounts::Item& other : items)
      if (other.event == event) throw InputError("the event {} is asked for twice", event);
    items.push_back({.event = event});
  }
  return items;
}

void run_event_count(const CountOptions& o) {
  const std::uint64_t samples = parse_count(o.samples, "--samples");
  check_count_flags(o);
  if (o.device != "cpu" || !o.keep_hits.empty())
    throw InputError("events are counted on the CPU, and no inputs of theirs are kept: leave out --{}",
                     o.device != "cpu" ? "device" : "keep-hits");
  if (o.event.sampled)
    throw InputError(
        "--sampled: a token that is drawn is counted by --tokens-any with its id and --within 1");
  const std::vector<EventCounts::Item> items = items_of(o);
  ReadFiles reads;
  reads.add_subject(o.model, o.prompts.dist);
  for (const std::string& file : {o.events, o.prompts.prompts})
    if (!file.empty()) reads.add_file(file);
  reads.refuse_output(o.out);
  ProgressMeter meter(stderr, progress_style(stderr, o.quiet), {.label = fmt::format("loading {}", o.model)});
  const LoadedModel model = load_model(o.model);
  const auto law = make_law(o.prompts, model);
  const Provenance p = provenance_of(model, *law);
  const EventCountRequest request{.subject = {.model = p.model,
                                              .law = p.dist,
                                              .model_sha256 = p.model_sha256,
                                              .law_sha256 = p.dist_sha256,
                                              .sampling = deployed_sampling(o.event, model),
                                              .events = items},
                                  .seed = o.seed,
                                  .first = o.first,
                                  .samples = samples,
                                  .out = o.out};
  ThreadPool pool;
  count_watched(o, meter, {.label = fmt::format("{} {}", p.model, p.dist), .unit = "texts", .total = samples},
                [&](const Watch& watch) { return count_events(model, *law, request, pool, watch); });
}

}  // namespace

void add_truth(CLI::App& app) {
  CLI::App* truth =
      app.add_subcommand("truth", "Count what a model says on sampled inputs; merge, show, compare counts");
  const auto o = std::make_shared<CountOptions>();
  truth->add_option("--model", o->model, "Folder or name of a model, or hf:ORG/NAME");
  truth->add_option("--dist", o->prompts.dist, "Name or file of a distribution, or of a law of prompts");
  add_prompt_flags(*truth, o->prompts);
  add_event_flags(*truth, o->event, true);
  truth->add_option(
      "--events", o->events,
      "A file of events that are counted on the same texts: one JSON object a line, or a list of "
      "them, such as {\"contains\": \" wizard\", \"within\": 40}");
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
  add_truth_files(*truth);
  truth->callback([truth, o] {
    if (!truth->get_subcommands().empty()) return;
    const bool of_events = !o->events.empty() || o->event.about_continuation();
    for (const char* flag : {"--model", "--samples", "--out"})
      if (truth->count(flag) == 0) throw CLI::RequiredError(flag);
    if (of_events) return run_event_count(*o);
    if (truth->count("--dist") == 0) throw CLI::RequiredError("--dist");
    if (o->prompts.prompt || !o->prompts.prompts.empty())
      throw InputError("--prompt and --prompts: expected an event, such as --contains TEXT --within 40");
    run_count(*o);
  });
}

}  // namespace deeptail::cli
