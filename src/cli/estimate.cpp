// deeptail estimate
#include <algorithm>
#include <cmath>

#include "cli/cloud_subject.h"
#include "cli/commands.h"
#include "cli/interrupt.h"
#include "cli/output.h"
#include "cli/parse.h"
#include "cli/target.h"
#include "core/json.h"
#include "core/memory.h"
#include "core/progress.h"
#include "core/tell.h"
#include "deeptail/methods.h"
#include "estimators/load_subject.h"

namespace deeptail::cli {

namespace {

// Flags of `deeptail estimate`; what is not given is left to the method.
struct EstimateOptions {
  std::string model, dist, target, method = "tokensplit", budget, device = "cpu";
  std::string activations, unembed, calibration, prior, kernel, start, normaliser, burn_in;
  std::uint64_t seed = 1;
  std::size_t threads = 0;
  std::optional<std::uint64_t> calibration_seed;
  std::optional<std::size_t> replicas, particles, moves, first_draw, chains;
  std::optional<double> rel_error, survive_fraction, forgotten, taper, temperature;
  bool json = false, quiet = false;
};

struct EstimateOutcome {
  Estimate estimate;
  std::optional<NamedTokenizer> tokenizer;
};

std::string target_text(const Estimate& e, const std::optional<NamedTokenizer>& tokenizer) {
  std::vector<std::string> names;
  for (const TokenId id : e.target)
    names.push_back(fmt::format("{}{}{}", id, tokenizer ? " " : "", shown(tokenizer, id)));
  return fmt::format("{}", fmt::join(names, ", "));
}

void print_estimate(const Estimate& e, const std::optional<NamedTokenizer>& tokenizer) {
  fmt::print("Pr[{} on {} says {}], {}, {} forward passes' work\n", printable(e.provenance.model),
             printable(e.provenance.dist), target_text(e, tokenizer), e.method,
             short_count(e.cost.forward_equivalents));
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
    fmt::print("  position {} is {} in {:.0f}% (of all inputs {:.3g}%)\n", p.position,
               tokenizer ? shown(tokenizer, p.token) : fmt::format("{}", p.token), 100.0 * p.share,
               100.0 * p.prior);
}

void check_has_model(const EstimateOptions& o) {
  if (!o.activations.empty() || !o.unembed.empty())
    throw InputError("method {}: expected --model and --dist, found --activations or --unembed", o.method);
  if (o.model.empty() || o.dist.empty()) throw InputError("method {}: expected --model and --dist", o.method);
}

std::string flag_of(std::string key) {
  std::replace(key.begin(), key.end(), '_', '-');
  return "--" + key;
}

// The flags that were given.
std::vector<Setting> settings_of(const EstimateOptions& o) {
  std::vector<Setting> settings;
  const auto text = [&](const char* key, const std::string& value) {
    if (!value.empty()) settings.push_back({key, value, flag_of(key)});
  };
  const auto number = [&](const char* key, const auto& value) {
    if (value) settings.push_back({key, fmt::format("{}", *value), flag_of(key)});
  };
  text("budget", o.budget);
  number("replicas", o.replicas);
  number("rel_error", o.rel_error);
  number("particles", o.particles);
  number("moves", o.moves);
  number("first_draw", o.first_draw);
  number("survive_fraction", o.survive_fraction);
  number("forgotten", o.forgotten);
  number("taper", o.taper);
  number("temperature", o.temperature);
  text("normaliser", o.normaliser);
  number("chains", o.chains);
  text("burn_in", o.burn_in);
  text("calibration", o.calibration);
  text("prior", o.prior);
  text("kernel", o.kernel);
  text("start", o.start);
  if (o.device != "cpu") text("device", o.device);
  return settings;
}

bool has(const std::vector<std::string>& keys, const std::string& key) {
  return std::find(keys.begin(), keys.end(), key) != keys.end();
}

// The method with those of the flags that are its own.
Method method_of(const EstimateOptions& o, const std::string& name) {
  const std::vector<std::string> known = make_method(name, {}).settings;
  std::vector<Setting> settings = settings_of(o);
  std::erase_if(settings, [&](const Setting& s) {
    // What fits one method's budget may not fit another's.
    const bool shared = s.key == "budget" || s.key == "replicas";
    return !has(known, s.key) || (shared && name != o.method);
  });
  return make_method(name, settings);
}

// A flag that makes no sense is told whatever the method and before any work.
void check_flags(const EstimateOptions& o) {
  const std::pair<const char*, std::optional<std::size_t>> counts[] = {{"--replicas", o.replicas},
                                                                       {"--particles", o.particles},
                                                                       {"--moves", o.moves},
                                                                       {"--first-draw", o.first_draw},
                                                                       {"--chains", o.chains}};
  for (const auto& [flag, value] : counts)
    if (value == 0u) throw InputError("{} 0: expected at least 1; leave it out for the default", flag);
  if (o.rel_error && !(*o.rel_error > 0.0))
    throw InputError("--rel-error {}: expected a positive number, such as 0.1", *o.rel_error);
  if (!o.budget.empty()) parse_count(o.budget, "--budget");
  method_of(o, o.method);
  for (const char* name : {"tokensplit", "ga-amls", "itgis", "mhis"}) method_of(o, name);
}

void warn_of_unused_flags(const EstimateOptions& o, const Method& method, Estimate& estimate) {
  for (const Setting& s : settings_of(o))
    if (!has(method.settings, s.key))
      estimate.warnings.push_back(fmt::format("{} has no effect on {}", s.where, o.method));
}

EstimateOutcome run_on_model(const Method& method, const EstimateOptions& o, ThreadPool& pool) {
  check_has_model(o);
  Subject subject = load_subject(o.model, o.dist);
  const std::uint64_t work = method.work(subject.model.config(), subject.dist);
  const Target target = parse_target(o.target, subject.model.head(), subject.tokenizer);
  ProgressMeter meter(stderr, progress_style(stderr, o.quiet || o.json),
                      {.label = o.method, .unit = method.unit, .total = work});
  const MethodHooks hooks{.keep_going = [&](std::uint64_t done) {
    meter.update(std::min(done, work));
    return !interrupted();
  }};
  Estimate estimate =
      run_method(method, {.model = &subject.model, .dist = &subject.dist, .provenance = subject.provenance},
                 target, o.seed, pool, hooks);
  return {std::move(estimate), std::move(subject.tokenizer)};
}

EstimateOutcome run_on_cloud(const Method& method, const EstimateOptions& o, ThreadPool& pool) {
  const auto check_size = [&](std::size_t n, std::size_t d) {
    check_memory(fmt::format("--calibration {}{}", n, method.bytes ? " and --particles" : ""),
                 2.0 * capture_bytes(n, d) + (method.bytes ? method.bytes(n, d) : 0.0),
                 "take fewer activations or particles");
  };
  CloudSubject subject =
      load_cloud({.model = o.model,
                  .dist = o.dist,
                  .activations = o.activations,
                  .unembed = o.unembed,
                  .count = method.calibration,
                  .seed = o.calibration_seed.value_or(o.seed),
                  .quiet = o.quiet || o.json,
                  .check_size = check_size,
                  .check_head = [&](const Head& head,
                                    const auto& tokenizer) { parse_target(o.target, head, tokenizer); }},
                 pool);
  const Target target = parse_target(o.target, subject.head, subject.tokenizer);
  const ProgressStyle style = progress_style(stderr, o.quiet || o.json);
  const MethodHooks hooks{.after_level = [&](const GaProgress& p) {
    if (style != ProgressStyle::kNone && p.moved == 0.0)
      tell(stderr, "run {} of {}  level {}: margin {:.3f}  p {:.2e}\n", p.replica + 1, method.replicas,
           p.level + 1, p.score_level, std::exp(p.log_p));
    return !interrupted();
  }};
  Estimate estimate = run_method(method,
                                 {.head = &subject.head,
                                  .activations = &subject.activations,
                                  .capture_cost = subject.capture_cost,
                                  .provenance = subject.provenance},
                                 target, o.seed, pool, hooks);
  return {std::move(estimate), std::move(subject.tokenizer)};
}

void run(const EstimateOptions& o) {
  const std::optional<Device> device = device_of(o.device);
  if (!device) throw InputError("--device {}: expected cpu or cuda", printable(o.device));
  check_flags(o);
  if (*device != Device::kCpu && !has(make_method(o.method, {}).settings, "device"))
    throw InputError("--device {}: {} runs on the CPU only; use --device cpu", o.device, o.method);
  require_device(*device);
  ThreadPool pool(o.threads);
  catch_interrupts();
  const Method method = method_of(o, o.method);
  auto [estimate, tokenizer] =
      method.calibration > 0 ? run_on_cloud(method, o, pool) : run_on_model(method, o, pool);
  warn_of_unused_flags(o, method, estimate);
  decode_tokens(estimate, tokenizer);
  if (o.json)
    fmt::print("{}\n", to_json(estimate));
  else
    print_estimate(estimate, tokenizer);
  if (estimate.status == Status::kBudgetSpent && !interrupted())
    throw Stopped(kBudgetSpent, "the budget was spent before the event was reached; try a larger --budget");
  if (interrupted())
    throw Stopped(kInterrupted, "interrupted; the estimate above uses the inputs seen until then");
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
  sub->add_option("--method", o->method,
                  "tokensplit: splitting on tokens; mc: plain sampling; itgis, mhis: importance sampling by "
                  "gradients; "
                  "ga-amls, qld, qld-arc, gld: from activations")
      ->capture_default_str();
  sub->add_option("--budget", o->budget,
                  "Forward passes (their equivalent in flops; itgis, mhis: samples), such as 2^16 or 1e6");
  sub->add_option("--replicas", o->replicas, "Independent replicas");
  sub->add_option("--rel-error", o->rel_error,
                  "Fewer particles where the pilot says that they give this relative standard error");
  sub->add_option("--particles", o->particles, "Particles per replica");
  sub->add_option("--moves", o->moves, "Moves per level (tokensplit: at most)");
  sub->add_option("--first-draw", o->first_draw, "tokensplit: plain samples that each replica starts from");
  sub->add_option("--survive-fraction", o->survive_fraction,
                  "tokensplit: share that survives a level of the pilot");
  sub->add_option("--forgotten", o->forgotten,
                  "tokensplit: moves go on until this correlation with the start of the level");
  sub->add_option("--temperature", o->temperature,
                  "itgis, mhis: lower follows the gradient more; default: the shipped table's, or 1");
  sub->add_option("--normaliser", o->normaliser, "mhis: harmonic or bridge (default harmonic)");
  sub->add_option("--chains", o->chains, "mhis: chains");
  sub->add_option("--burn-in", o->burn_in, "mhis: steps of every chain before its samples count");
  sub->add_option("--calibration", o->calibration,
                  "Activations captured for qld, gld, ga-amls (default 2^16)");
  sub->add_option("--calibration-seed", o->calibration_seed,
                  "Seed of these activations; --seed where not given");
  sub->add_option("--prior", o->prior,
                  "ga-amls: student_t, student_t_matched, gaussian or conditioned (default student_t)");
  sub->add_option("--kernel", o->kernel, "ga-amls: mala, rwmh, mapla or pcn (default mala)");
  sub->add_option(
      "--start", o->start,
      "ga-amls: particles start at calibration activations or at draws from the prior (default calibration)");
  sub->add_option("--seed", o->seed, "Seed")->capture_default_str();
  sub->add_option("--taper", o->taper, "tokensplit: particles at the first level over those at the last");
  sub->add_option("--threads", o->threads, "Threads; 0: one per core")->capture_default_str();
  sub->add_option("--device", o->device, "cpu, or cuda where it is built in")->capture_default_str();
  sub->add_flag("--json", o->json, "Machine-readable output");
  sub->add_flag("--quiet", o->quiet, "No progress");
  sub->callback([o] { run(*o); });
}

}  // namespace deeptail::cli
