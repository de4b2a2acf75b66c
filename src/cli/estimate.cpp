// deeptail estimate
#include <algorithm>
#include <cmath>
#include <map>

#include "cli/commands.h"
#include "cli/estimate_options.h"
#include "cli/interrupt.h"
#include "cli/output.h"
#include "cli/parse.h"
#include "cli/subject.h"
#include "cli/target.h"
#include "core/json.h"
#include "core/progress.h"

namespace deeptail::cli {

namespace {

std::string target_text(const Estimate& e, const std::optional<NamedTokenizer>& tokenizer) {
  std::vector<std::string> names;
  for (const TokenId id : e.target)
    names.push_back(fmt::format("{}{}{}", id, tokenizer ? " " : "", shown(tokenizer, id)));
  return fmt::format("{}", fmt::join(names, ", "));
}

void print_estimate(const Estimate& e, const std::optional<NamedTokenizer>& tokenizer) {
  fmt::print("Pr[{} on {} says {}], {}, {} forward passes' work\n", e.provenance.model, e.provenance.dist,
             target_text(e, tokenizer), e.method, short_count(e.cost.forward_equivalents));
  const double low = std::exp(e.log_low), high = std::exp(e.log_high);
  if (e.status == Status::kNotReachedUpperBound)
    fmt::print("p < {:.3g} ({:.0f}% confidence): the event was never seen\n", high, 100.0 * e.confidence);
  else
    fmt::print("p = {:.4g}  {:.0f}% interval [{:.4g}, {:.4g}]\n", std::exp(e.log_p), 100.0 * e.confidence,
               low, high);
  fmt::print("status {}  guarantee {}  seed {}  {:.1f} s\n", name_of(e.status), name_of(e.guarantee), e.seed,
             e.cost.seconds);
  if (!e.diagnostics.empty()) {
    std::vector<std::string> figures;
    for (const auto& [name, value] : e.diagnostics) figures.push_back(fmt::format("{} {:.4g}", name, value));
    fmt::print("{}\n", fmt::join(figures, "  "));
  }
  for (const std::string& warning : e.warnings) fmt::print("warning: {}\n", warning);
  if (!e.triggers.empty()) fmt::print("inputs that say it:\n");
  for (const Trigger& t : e.triggers)
    fmt::print("  {}\n", tokenizer ? printable(t.text, 400) : fmt::format("{}", fmt::join(t.tokens, " ")));
  if (!e.positions.empty()) fmt::print("what they share:\n");
  for (const DecidingPosition& p : e.positions)
    fmt::print("  position {} is {} in {:.0f}% (of all inputs {:.2g}%)\n", p.position,
               shown(tokenizer, p.token), 100.0 * p.share, 100.0 * p.prior);
}

void check_has_model(const EstimateOptions& o) {
  if (!o.activations.empty() || !o.unembed.empty())
    throw InputError("method {}: expected --model and --dist, found --activations or --unembed", o.method);
  if (o.model.empty() || o.dist.empty()) throw InputError("method {}: expected --model and --dist", o.method);
}

TokensplitConfig tokensplit_config(const EstimateOptions& o) {
  const TokensplitConfig usual;
  TokensplitConfig config{.rel_error = o.rel_error.value_or(0.0),
                          .seed = o.seed,
                          .survive_fraction = o.survive_fraction.value_or(usual.survive_fraction),
                          .forgotten = o.forgotten.value_or(usual.forgotten),
                          .particles = o.particles.value_or(0),
                          .taper = o.taper.value_or(usual.taper),
                          .first_draw = o.first_draw.value_or(0),
                          .moves = o.moves.value_or(0)};
  config.validate();
  return config;
}

// A flag that makes no sense is told whatever the method and before any work.
void check_flags(const EstimateOptions& o) {
  const std::pair<const char*, std::optional<std::size_t>> counts[] = {{"--replicas", o.replicas},
                                                                       {"--particles", o.particles},
                                                                       {"--moves", o.moves},
                                                                       {"--first-draw", o.first_draw}};
  for (const auto& [flag, value] : counts)
    if (value == 0u) throw InputError("{} 0: expected at least 1; leave it out for the default", flag);
  if (o.rel_error && !(*o.rel_error > 0.0))
    throw InputError("--rel-error {}: expected a positive number, such as 0.1", *o.rel_error);
  if (!o.budget.empty()) parse_count(o.budget, "--budget");
  CaptureConfig{.count = parse_count(o.calibration, "--calibration")}.validate();
  tokensplit_config(o);
  check_cloud_flags(o);
}

EstimateOutcome run_tokensplit(const EstimateOptions& o, ThreadPool& pool) {
  check_has_model(o);
  TokensplitConfig config = tokensplit_config(o);
  if (!o.budget.empty()) config.budget = static_cast<double>(parse_count(o.budget, "--budget"));
  if (o.replicas) config.replicas = *o.replicas;
  config.validate();
  Subject subject = load_subject(o.model, o.dist);
  if (config.budget == 0.0) config.budget = tokensplit_budget(subject.model.config(), subject.dist);
  const Target target = parse_target(o.target, subject.model.head(), subject.tokenizer);
  ProgressMeter meter(
      stderr, progress_style(stderr, o.quiet || o.json),
      {.label = o.method, .unit = "forwards", .total = static_cast<std::uint64_t>(config.budget)});
  Estimate estimate = tokensplit(subject.model, subject.dist, target, config, pool, [&](std::uint64_t done) {
    meter.update(std::min(done, static_cast<std::uint64_t>(config.budget)));
    return !interrupted();
  });
  estimate.provenance = subject.provenance;
  return {std::move(estimate), std::move(subject.tokenizer)};
}

EstimateOutcome run_mc(const EstimateOptions& o, ThreadPool& pool) {
  check_has_model(o);
  McConfig config{.seed = o.seed};
  if (!o.budget.empty()) config.budget = parse_count(o.budget, "--budget");
  Subject subject = load_subject(o.model, o.dist);
  const Target target = parse_target(o.target, subject.model.head(), subject.tokenizer);
  ProgressMeter meter(stderr, progress_style(stderr, o.quiet || o.json),
                      {.label = o.method, .unit = "inputs", .total = config.budget});
  Estimate estimate = mc(subject.model, subject.dist, target, config, pool, [&](std::uint64_t done) {
    meter.update(done);
    return !interrupted();
  });
  estimate.provenance = subject.provenance;
  return {std::move(estimate), std::move(subject.tokenizer)};
}

EstimateOutcome run_method(const EstimateOptions& o, ThreadPool& pool) {
  if (o.method == "tokensplit") return run_tokensplit(o, pool);
  if (o.method == "mc") return run_mc(o, pool);
  if (auto outcome = run_cloud_method(o, pool)) return std::move(*outcome);
  throw InputError(
      "method {} is not implemented in this version; available: tokensplit, mc, ga-amls, qld, qld-arc, gld",
      printable(o.method));
}

void run(const EstimateOptions& o) {
  if (o.device == "cuda") throw InputError("--device cuda: this build has no CUDA backend; use --device cpu");
  if (o.device != "cpu") throw InputError("--device {}: expected cpu or cuda", printable(o.device));
  check_flags(o);
  ThreadPool pool(o.threads);
  catch_interrupts();
  auto [estimate, tokenizer] = run_method(o, pool);
  for (const std::string& flag : o.unused)
    estimate.warnings.push_back(fmt::format("{} has no effect on {}", flag, o.method));
  if (tokenizer)
    for (Trigger& t : estimate.triggers) t.text = tokenizer->tokenizer.decode(t.tokens);
  if (tokenizer)
    for (DecidingPosition& p : estimate.positions)
      p.text = tokenizer->tokenizer.decode(std::span(&p.token, 1));
  if (o.json)
    fmt::print("{}\n", to_json(estimate));
  else
    print_estimate(estimate, tokenizer);
  if (estimate.status == Status::kBudgetSpent && !interrupted())
    throw Stopped(kBudgetSpent, "the budget was spent before the event was reached; try a larger --budget");
  if (interrupted())
    throw Stopped(kInterrupted, "interrupted; the estimate above uses the inputs seen until then");
}

// Flags that only some methods take; a flag given in vain is told in the warnings.
const std::map<std::string, std::vector<std::string>>& takers_of_flags() {
  static const std::map<std::string, std::vector<std::string>> takers = {
      {"--budget", {"tokensplit", "mc"}},
      {"--replicas", {"tokensplit", "ga-amls"}},
      {"--rel-error", {"tokensplit"}},
      {"--particles", {"tokensplit", "ga-amls"}},
      {"--moves", {"tokensplit", "ga-amls"}},
      {"--first-draw", {"tokensplit"}},
      {"--survive-fraction", {"tokensplit"}},
      {"--forgotten", {"tokensplit"}},
      {"--taper", {"tokensplit"}},
      {"--calibration", {"ga-amls", "qld", "qld-arc", "gld"}},
      {"--prior", {"ga-amls"}},
      {"--kernel", {"ga-amls"}},
      {"--start", {"ga-amls"}}};
  return takers;
}

}  // namespace

void add_estimate(CLI::App& app) {
  CLI::App* sub = app.add_subcommand("estimate", "How likely is it that the model says the target?");
  const auto o = std::make_shared<EstimateOptions>();
  sub->add_option("--model", o->model, "Folder or name of a model");
  sub->add_option("--dist", o->dist, "Name or file of a distribution");
  sub->add_option("--activations", o->activations,
                  "Instead of --model and --dist: activations [n, d_model] (qld, gld, ga-amls)");
  sub->add_option("--unembed", o->unembed, "With --activations: file with unembed.W_U and perhaps ln_final");
  sub->add_option("--target", o->target, "Token id, token (\" the\"), or several separated by commas")
      ->required();
  sub->add_option(
         "--method", o->method,
         "tokensplit: splitting on tokens; mc: plain sampling; ga-amls, qld, qld-arc, gld: from activations")
      ->capture_default_str();
  sub->add_option("--budget", o->budget, "Forward passes (their equivalent in flops), such as 2^16 or 1e6");
  sub->add_option("--replicas", o->replicas, "Independent replicas");
  sub->add_option("--rel-error", o->rel_error, "Stop at this relative standard error");
  sub->add_option("--particles", o->particles, "Particles per replica");
  sub->add_option("--moves", o->moves, "Moves per level (tokensplit: at most)");
  sub->add_option("--first-draw", o->first_draw, "tokensplit: plain samples that each replica starts from");
  sub->add_option("--survive-fraction", o->survive_fraction,
                  "tokensplit: share that survives a level of the pilot");
  sub->add_option("--forgotten", o->forgotten,
                  "tokensplit: moves go on until this correlation with the start of the level");
  sub->add_option("--calibration", o->calibration, "Activations captured for qld, gld, ga-amls")
      ->capture_default_str();
  sub->add_option("--prior", o->prior, "ga-amls: student_t, student_t_matched, gaussian or conditioned")
      ->capture_default_str();
  sub->add_option("--kernel", o->kernel, "ga-amls: mala, rwmh, mapla or pcn")->capture_default_str();
  sub->add_option("--start", o->start,
                  "ga-amls: particles start at calibration activations or at draws from the prior")
      ->capture_default_str();
  sub->add_option("--seed", o->seed, "Seed")->capture_default_str();
  sub->add_option("--taper", o->taper, "tokensplit: particles at the first level over those at the last");
  sub->add_option("--threads", o->threads, "Threads; 0: one per core")->capture_default_str();
  sub->add_option("--device", o->device, "cpu, or cuda where it is built in")->capture_default_str();
  sub->add_flag("--json", o->json, "Machine-readable output");
  sub->add_flag("--quiet", o->quiet, "No progress");
  sub->callback([o, sub] {
    for (const auto& [flag, methods] : takers_of_flags())
      if (sub->count(flag) > 0 && std::find(methods.begin(), methods.end(), o->method) == methods.end())
        o->unused.push_back(flag);
    run(*o);
  });
}

}  // namespace deeptail::cli
