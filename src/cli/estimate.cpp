// deeptail estimate
#include <cmath>

#include "cli/cloud_subject.h"
#include "cli/commands.h"
#include "cli/interrupt.h"
#include "cli/output.h"
#include "cli/target.h"
#include "core/json.h"
#include "core/progress.h"
#include "deeptail/methods.h"
#include "estimators/load_subject.h"

namespace deeptail::cli {

namespace {

// Flags of `deeptail estimate`; 0 and "" leave a setting to the method.
struct EstimateOptions {
  std::string model, dist, target, method = "tokensplit", budget, device = "cpu";
  std::string activations, unembed, calibration = "2^16";
  std::string prior = "student_t", kernel = "mala", start = "calibration";
  std::string normaliser = "harmonic", burn_in;
  std::uint64_t seed = 1;
  std::optional<std::uint64_t> calibration_seed;
  std::size_t replicas = 0, particles = 0, moves = 0, first_draw = 0, threads = 0, chains = 0;
  double rel_error = 0.0, survive_fraction = 0.0, forgotten = 0.0, taper = 0.0, temperature = 0.0;
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

// The flags that were given.
std::vector<Setting> settings_of(const EstimateOptions& o) {
  std::vector<Setting> settings;
  const auto add = [&](const char* key, std::string value) {
    std::string flag = fmt::format("--{}", key);
    std::replace(flag.begin(), flag.end(), '_', '-');
    if (!value.empty()) settings.push_back({key, std::move(value), flag});
  };
  const auto number = [](auto value) { return value > 0 ? fmt::format("{}", value) : ""; };
  add("budget", o.budget);
  add("replicas", number(o.replicas));
  add("rel_error", o.rel_error != 0.0 ? fmt::format("{}", o.rel_error) : "");
  add("particles", number(o.particles));
  add("moves", number(o.moves));
  add("first_draw", number(o.first_draw));
  add("survive_fraction", number(o.survive_fraction));
  add("forgotten", number(o.forgotten));
  add("taper", number(o.taper));
  add("temperature", number(o.temperature));
  add("normaliser", o.normaliser);
  add("chains", number(o.chains));
  add("burn_in", o.burn_in);
  add("calibration", o.calibration);
  add("prior", o.prior);
  add("kernel", o.kernel);
  add("start", o.start);
  return settings;
}

// The method with those of the flags that are its own.
Method method_of(const EstimateOptions& o, const std::string& name) {
  const std::vector<std::string> known = make_method(name, {}).settings;
  std::vector<Setting> settings = settings_of(o);
  std::erase_if(settings, [&](const Setting& s) {
    return std::find(known.begin(), known.end(), s.key) == known.end();
  });
  return make_method(name, settings);
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
  method_of(o, "ga-amls");  // so that a wrong flag is told before the work
  CloudSubject subject = load_cloud({.model = o.model,
                                     .dist = o.dist,
                                     .activations = o.activations,
                                     .unembed = o.unembed,
                                     .count = method.calibration,
                                     .seed = o.calibration_seed.value_or(o.seed),
                                     .quiet = o.quiet || o.json},
                                    pool);
  const Target target = parse_target(o.target, subject.head, subject.tokenizer);
  const ProgressStyle style = progress_style(stderr, o.quiet || o.json);
  const MethodHooks hooks{.after_level = [&](const GaProgress& p) {
    if (style != ProgressStyle::kNone)
      fmt::print(stderr, "run {} of {}  level {}: margin {:.3f}  p {:.2e}\n", p.replica + 1, method.replicas,
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
  if (o.device == "cuda") throw InputError("--device cuda: this build has no CUDA backend; use --device cpu");
  if (o.device != "cpu") throw InputError("--device {}: expected cpu or cuda", printable(o.device));
  ThreadPool pool(o.threads);
  catch_interrupts();
  const Method method = method_of(o, o.method);
  auto [estimate, tokenizer] =
      method.calibration > 0 ? run_on_cloud(method, o, pool) : run_on_model(method, o, pool);
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
  sub->add_option("--rel-error", o->rel_error, "Stop at this relative standard error");
  sub->add_option("--particles", o->particles, "Particles per replica");
  sub->add_option("--moves", o->moves, "Moves per level (tokensplit: at most)");
  sub->add_option("--first-draw", o->first_draw, "tokensplit: plain samples that each replica starts from");
  sub->add_option("--survive-fraction", o->survive_fraction,
                  "tokensplit: share that survives a level of the pilot");
  sub->add_option("--forgotten", o->forgotten,
                  "tokensplit: moves go on until this correlation with the start of the level");
  sub->add_option("--temperature", o->temperature,
                  "itgis, mhis: lower follows the gradient more; default: the shipped table's, or 1")
      ->check(CLI::PositiveNumber);
  sub->add_option("--normaliser", o->normaliser, "mhis: harmonic or bridge")->capture_default_str();
  sub->add_option("--chains", o->chains, "mhis: chains");
  sub->add_option("--burn-in", o->burn_in, "mhis: steps of every chain before its samples count");
  sub->add_option("--calibration", o->calibration, "Activations captured for qld, gld, ga-amls")
      ->capture_default_str();
  sub->add_option("--calibration-seed", o->calibration_seed,
                  "Seed of these activations; --seed where not given");
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
  sub->callback([o] { run(*o); });
}

}  // namespace deeptail::cli
