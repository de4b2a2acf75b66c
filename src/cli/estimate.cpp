// deeptail estimate
#include <algorithm>
#include <utility>

#include "cli/cloud_subject.h"
#include "cli/commands.h"
#include "cli/estimate_all.h"
#include "cli/estimate_flags.h"
#include "cli/estimate_forecast.h"
#include "cli/estimate_output.h"
#include "cli/interrupt.h"
#include "cli/target.h"
#include "core/memory.h"
#include "core/screen_text.h"
#include "core/tell.h"
#include "deeptail/continuation.h"
#include "deeptail/estimators.h"
#include "deeptail/methods.h"

namespace deeptail::cli {

namespace {

// What is asked, loaded once.
struct Asked {
  Method method;
  const std::optional<NamedTokenizer>& tokenizer;
  std::vector<Question> questions;
  std::uint64_t work = 0;  // per question; 0: not known
};

// As given; "": not.
std::string setting_of(const EstimateOptions& o, std::string_view key) {
  for (std::size_t i = 0; i < o.settings.size(); ++i)
    if (setting_rows()[i]->key == key) return o.settings[i];
  return "";
}

// Every target, before the first is worked on.
std::vector<NextToken> read_events(const EstimateOptions& o, const Head& head,
                                   const std::optional<NamedTokenizer>& tokenizer) {
  std::vector<NextToken> events;
  for (Target& target : parse_targets(o.targets, o.targets_file, head, tokenizer))
    events.emplace_back(std::move(target));
  return events;
}

// Of a model: the argmax of the next token, or what the flags say of its continuation.
std::vector<std::unique_ptr<Event>> asked_events(const EstimateOptions& o, const LoadedModel& model) {
  std::vector<std::unique_ptr<Event>> events;
  if (!o.event.about_continuation()) {
    for (NextToken& event : read_events(o, model.head(), model.tokenizer))
      events.push_back(std::make_unique<NextToken>(std::move(event)));
    return events;
  }
  EventOptions event = o.event;
  event.temperature = setting_of(o, "temperature");
  if (o.targets.empty() && o.targets_file.empty()) {
    events.push_back(make_event(event, model));
    return events;
  }
  if (!event.sampled)
    throw InputError("--target and {}: expected one event", fmt::join(event.events(), ", "));
  for (const Target& target : parse_targets(o.targets, o.targets_file, model.head(), model.tokenizer))
    events.push_back(make_event(event, model, target.ids()));
  return events;
}

void check_has_model(const EstimateOptions& o) {
  if (!o.activations.empty() || !o.unembed.empty())
    throw InputError(
        "{} runs the model on its inputs: activations alone are not enough; expected --model and --dist, "
        "found --activations or --unembed",
        method_name(o));
  const PromptOptions& p = o.prompts;
  if (o.model.empty() || (p.dist.empty() && !p.prompt && p.prompts.empty()))
    throw InputError("method {}: expected --model and --dist", method_name(o));
}

void run_one_by_one(const Asked& asked, const EstimateOptions& o, ThreadPool& pool, ProgressMeter& meter,
                    EstimatePrinter& printer) {
  const std::size_t n = asked.questions.size();
  const auto name = [&](std::size_t i) {
    const Target* target = asked.questions[i].next_token();
    return n == 1              ? ""
           : target == nullptr ? asked.questions[i].event->text()
                               : shown_tokens(asked.tokenizer, target->ids());
  };
  ProgressState start{.label = asked.method.name, .unit = asked.method.unit, .total = asked.work * n};
  if (asked.work == 0 && n > 1) start.unit = "targets", start.total = n;
  meter.restart(start);
  for (std::size_t i = 0; i < n && !(interrupted() && i > 0); ++i) {
    meter.set_item(name(i));
    const auto watch = [&](const Progress& p) {
      if (asked.work > 0) meter.update(asked.work * i + std::min(p.done, asked.work));
      if (!p.note.empty()) meter.set_item(fmt::format("{}{}{}", name(i), n == 1 ? "" : " ", p.note));
      return !interrupted();
    };
    Estimate estimate = run_method(asked.method, asked.questions[i], o.seed, pool, watch);
    warn_of_unused_flags(o, asked.method, estimate);
    printer.take(i, std::move(estimate));
    if (asked.work == 0 && n > 1 && i + 1 < n) meter.update(i + 1);
  }
}

void run_together(const Asked& asked, const EstimateOptions& o, ThreadPool& pool, ProgressMeter& meter,
                  EstimatePrinter& printer) {
  const std::uint64_t work = asked.work * (asked.method.shares_draws ? 1 : asked.questions.size());
  meter.restart({.label = asked.method.name, .unit = asked.method.unit, .total = work});
  std::vector<MethodTask> tasks;
  for (const Question& question : asked.questions) tasks.push_back({question, o.seed});
  run_method_many(asked.method, tasks,
                  {.on_estimate =
                       [&](std::size_t task, Estimate estimate) {
                         warn_of_unused_flags(o, asked.method, estimate);
                         printer.take(task, std::move(estimate));
                       }},
                  pool, [&](const Progress& p) {
                    meter.update(std::min(p.done, work));
                    return !interrupted();
                  });
}

void answer(const Asked& asked, const EstimateOptions& o, ThreadPool& pool, ProgressMeter& meter) {
  EstimatePrinter printer(asked.questions.size(), o.json, asked.tokenizer, meter);
  if (asked.method.run_many && asked.questions.size() > 1)
    run_together(asked, o, pool, meter, printer);
  else
    run_one_by_one(asked, o, pool, meter, printer);
  meter.clear();
  if (interrupted() && asked.questions.size() > 1)
    throw Stopped(kInterrupted,
                  fmt::format("interrupted; {} of {} targets are above, the last one with the inputs seen "
                              "until then",
                              printer.printed(), asked.questions.size()));
  if (interrupted())
    throw Stopped(kInterrupted, "interrupted; the estimate above uses the inputs seen until then");
  if (printer.budget_spent())
    throw Stopped(kBudgetSpent, "the budget was spent before the event was reached; try a larger --budget");
}

void run_on_model(const Method& method, const EstimateOptions& o, ThreadPool& pool, ProgressMeter& meter) {
  check_has_model(o);
  const LoadedModel model = load_model(o.model);
  const auto law = make_law(o.prompts, model);
  const auto events = asked_events(o, model);
  Asked asked{.method = method, .tokenizer = model.tokenizer, .questions = {}};
  for (const auto& event : events) {
    asked.questions.emplace_back(model, *law, *event);
    check_can_answer(method, asked.questions.back());
  }
  asked.work = method.work(asked.questions.front());
  if (const std::string forecast =
          forecast_text(method, asked.questions.front(), method.shares_draws ? 1 : events.size(), pool);
      !forecast.empty() && !o.quiet) {
    meter.clear();
    tell(stderr, "deeptail: {}\n", forecast);
  }
  answer(asked, o, pool, meter);
}

void run_on_cloud(const Method& method, const EstimateOptions& o, ThreadPool& pool, ProgressMeter& meter) {
  const auto check_size = [&](std::size_t n, std::size_t d) {
    check_memory(fmt::format("--calibration {}{}", n, method.bytes ? " and --particles" : ""),
                 2.0 * capture_bytes(n, d) + (method.bytes ? method.bytes(n, d) : 0.0),
                 "take fewer activations or particles");
  };
  const Activations none;
  const auto check_targets = [&](const Head& head, const auto& tokenizer) {
    for (const NextToken& event : read_events(o, head, tokenizer))
      check_can_answer(method, {head, none, event});
  };
  const CloudSubject subject = load_cloud({.model = o.model,
                                           .dist = o.prompts.dist,
                                           .activations = o.activations,
                                           .unembed = o.unembed,
                                           .count = method.calibration,
                                           .seed = o.calibration_seed.value_or(o.seed),
                                           .check_size = check_size,
                                           .check_head = check_targets},
                                          pool, meter);
  const std::vector<NextToken> events = read_events(o, subject.head, subject.tokenizer);
  Asked asked{.method = method, .tokenizer = subject.tokenizer, .questions = {}};
  for (const NextToken& event : events) {
    Question question(subject.head, subject.activations, event);
    question.capture_cost = subject.capture_cost;
    question.provenance = subject.provenance;
    check_can_answer(method, question);
    asked.questions.push_back(std::move(question));
  }
  answer(asked, o, pool, meter);
}

// With --json only a person at a terminal is told how far it is.
ProgressStyle style_of(const EstimateOptions& o) {
  const ProgressStyle style = progress_style(stderr, o.quiet);
  return o.json && style == ProgressStyle::kLines ? ProgressStyle::kNone : style;
}

std::string asked_device(const EstimateOptions& o) {
  const std::string device = setting_of(o, "device");
  return device.empty() ? std::string(name_of(Device::kCpu)) : device;
}

void run(const EstimateOptions& o) {
  const Method method = checked_method(o);
  if (const std::string device = asked_device(o); device != name_of(method.device))
    throw InputError("--device {}: {} runs on the CPU only; use --device cpu", device, method.name);
  require_device(method.device);
  ThreadPool pool(o.threads);
  catch_interrupts();
  ProgressMeter meter(stderr, style_of(o), {.label = fmt::format("loading {}", o.model)});
  if (method.needs_activations() && o.event.about_continuation())
    throw InputError(
        "method {} is about the most likely next token, not about sampled text; leave --method out",
        method.name);
  if (o.all.all)
    run_on_all_tokens(o, pool, meter);
  else if (method.needs_activations())
    run_on_cloud(method, o, pool, meter);
  else
    run_on_model(method, o, pool, meter);
}

}  // namespace

void add_estimate(CLI::App& app) {
  CLI::App* sub = app.add_subcommand("estimate", "How likely is it that the model says the target?");
  const auto o = std::make_shared<EstimateOptions>();
  add_estimate_flags(*sub, *o);
  sub->callback([o] { run(*o); });
}

}  // namespace deeptail::cli
