// deeptail estimate
#include <cmath>

#include "cli/commands.h"
#include "cli/interrupt.h"
#include "cli/output.h"
#include "cli/parse.h"
#include "cli/subject.h"
#include "cli/target.h"
#include "core/json.h"
#include "core/progress.h"

namespace deeptail::cli {

namespace {

struct Options {
  std::string model, dist, target, method = "mc", budget = "2^16";
  std::uint64_t seed = 1;
  bool json = false, quiet = false;
};

void check_method(const std::string& method) {
  if (method != "mc")
    throw InputError("method {} is not implemented in this version; available: mc", printable(method));
}

std::string target_text(const Estimate& e, const std::optional<NamedTokenizer>& tokenizer) {
  std::vector<std::string> names;
  for (const TokenId id : e.target)
    names.push_back(fmt::format("{}{}{}", id, tokenizer ? " " : "", shown(tokenizer, id)));
  return fmt::format("{}", fmt::join(names, ", "));
}

void print_estimate(const Estimate& e, const std::optional<NamedTokenizer>& tokenizer) {
  fmt::print("Pr[{} on {} says {}], {}, {} inputs\n", e.provenance.model, e.provenance.dist,
             target_text(e, tokenizer), e.method, e.cost.forward);
  const double low = std::exp(e.log_low), high = std::exp(e.log_high);
  if (e.status == Status::kNotReachedUpperBound)
    fmt::print("p < {:.3g} ({:.0f}% confidence): the event was never seen\n", high, 100.0 * e.confidence);
  else
    fmt::print("p = {:.4g}  {:.0f}% interval [{:.4g}, {:.4g}]\n", std::exp(e.log_p), 100.0 * e.confidence,
               low, high);
  fmt::print("status {}  guarantee {}  seed {}  {:.1f} s\n", name_of(e.status), name_of(e.guarantee), e.seed,
             e.cost.seconds);
  for (const std::string& warning : e.warnings) fmt::print("warning: {}\n", warning);
  for (const Trigger& t : e.triggers)
    fmt::print("input {}: {}\n", t.sample,
               tokenizer ? printable(t.text, 400) : fmt::format("{}", fmt::join(t.tokens, " ")));
}

void run(const Options& o) {
  check_method(o.method);
  const McConfig config{.budget = parse_count(o.budget, "--budget"), .seed = o.seed};
  const Subject subject = load_subject(o.model, o.dist);
  const Target target = parse_target(o.target, subject.model.head(), subject.tokenizer);
  ThreadPool pool;
  catch_interrupts();
  Estimate estimate;
  {
    ProgressMeter meter(stderr, progress_style(stderr, o.quiet || o.json),
                        {.label = o.method, .unit = "inputs", .total = config.budget});
    estimate = mc(subject.model, subject.dist, target, config, pool, [&](std::uint64_t done) {
      meter.update(done);
      return !interrupted();
    });
  }
  estimate.provenance = subject.provenance;
  if (subject.tokenizer)
    for (Trigger& t : estimate.triggers) t.text = subject.tokenizer->tokenizer.decode(t.tokens);
  if (o.json)
    fmt::print("{}\n", to_json(estimate));
  else
    print_estimate(estimate, subject.tokenizer);
  if (interrupted())
    throw Stopped(kInterrupted, "interrupted; the estimate above uses the inputs seen until then");
}

}  // namespace

void add_estimate(CLI::App& app) {
  CLI::App* sub = app.add_subcommand("estimate", "How likely is it that the model says the target?");
  const auto o = std::make_shared<Options>();
  sub->add_option("--model", o->model, "Folder or name of a model")->required();
  sub->add_option("--dist", o->dist, "Name or file of a distribution")->required();
  sub->add_option("--target", o->target, "Token id, token (\" the\"), or several separated by commas")
      ->required();
  sub->add_option("--method", o->method, "mc: plain sampling")->capture_default_str();
  sub->add_option("--budget", o->budget, "Forward passes, such as 2^16 or 1e6")->capture_default_str();
  sub->add_option("--seed", o->seed, "Seed")->capture_default_str();
  sub->add_flag("--json", o->json, "Machine-readable output");
  sub->add_flag("--quiet", o->quiet, "No progress");
  sub->callback([o] { run(*o); });
}

}  // namespace deeptail::cli
