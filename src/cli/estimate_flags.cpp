#include "cli/estimate_flags.h"

#include <algorithm>

#include "cli/parse.h"
#include "core/screen_text.h"

namespace deeptail::cli {

namespace {

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

}  // namespace

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
  if (o.targets.empty() && o.targets_file.empty())
    throw InputError(
        "--target is required: a token id or a token, such as --target 310 or --target \" the\"");
  for (const char* name : {"tokensplit", "ga-amls", "itgis", "mhis"}) method_of(o, name);
}

void warn_of_unused_flags(const EstimateOptions& o, const Method& method, Estimate& estimate) {
  for (const Setting& s : settings_of(o))
    if (!has(method.settings, s.key))
      estimate.warnings.push_back(fmt::format("{} has no effect on {}", s.where, o.method));
}

namespace {

void add_question(CLI::App& command, EstimateOptions& o) {
  constexpr const char* kGroup = "The question";
  command.add_option("--model", o.model, "Folder or name of a model")->group(kGroup);
  command.add_option("--dist", o.dist, "Name or file of a distribution")->group(kGroup);
  command
      .add_option("--target", o.targets,
                  "Token id, token (\" the\"), or several separated by commas: any of them will do. Given "
                  "again: another question about the same model")
      ->allow_extra_args(false)
      ->group(kGroup);
  command
      .add_option("--targets", o.targets_file,
                  "File with one target a line: an id, or a token in double quotes as in JSON")
      ->group(kGroup);
  command
      .add_option("--activations", o.activations,
                  "Instead of --model and --dist: activations [n, d_model] (qld, gld, ga-amls)")
      ->group(kGroup);
  command
      .add_option("--unembed", o.unembed, "With --activations: file with unembed.W_U and perhaps ln_final")
      ->group(kGroup);
}

void add_work(CLI::App& command, EstimateOptions& o) {
  constexpr const char* kGroup = "The method and its work";
  command
      .add_option("--method", o.method,
                  "tokensplit: splitting on tokens; mc: plain sampling; itgis, mhis: importance sampling by "
                  "gradients; ga-amls, qld, qld-arc, gld: from activations")
      ->capture_default_str()
      ->group(kGroup);
  command
      .add_option("--budget", o.budget,
                  "Forward passes (their equivalent in flops; itgis, mhis: samples), such as 2^16 or 1e6")
      ->group(kGroup);
  command
      .add_option("--rel-error", o.rel_error,
                  "Fewer particles where the pilot says that they give this relative standard error")
      ->group(kGroup);
  command.add_option("--replicas", o.replicas, "Independent replicas")->group(kGroup);
  command.add_option("--seed", o.seed, "Seed")->capture_default_str()->group(kGroup);
  command.add_option("--threads", o.threads, "Threads; 0: one per core")
      ->capture_default_str()
      ->group(kGroup);
  command.add_option("--device", o.device, "cpu, or cuda where it is built in")
      ->capture_default_str()
      ->group(kGroup);
}

void add_splitting(CLI::App& command, EstimateOptions& o) {
  constexpr const char* kGroup = "Settings of tokensplit and ga-amls";
  const auto add = [&](const char* flag, auto& value, const char* what) {
    command.add_option(flag, value, what)->group(kGroup);
  };
  add("--particles", o.particles, "Particles per replica");
  add("--moves", o.moves, "Moves per level (tokensplit: at most)");
  add("--first-draw", o.first_draw, "tokensplit: plain samples that each replica starts from");
  add("--survive-fraction", o.survive_fraction, "tokensplit: share that survives a level of the pilot");
  add("--forgotten", o.forgotten,
      "tokensplit: moves go on until this correlation with the start of the level");
  add("--taper", o.taper, "tokensplit: particles at the first level over those at the last");
  add("--prior", o.prior,
      "ga-amls: student_t, student_t_matched, gaussian or conditioned (default student_t)");
  add("--kernel", o.kernel, "ga-amls: mala, rwmh, mapla or pcn (default mala)");
  add("--start", o.start,
      "ga-amls: particles start at calibration activations or at draws from the prior (default calibration)");
}

void add_others(CLI::App& command, EstimateOptions& o) {
  const auto add = [&](const char* group, const char* flag, auto& value, const char* what) {
    command.add_option(flag, value, what)->group(group);
  };
  constexpr const char *kCloud = "Settings of qld, qld-arc, gld and ga-amls",
                       *kGradients = "Settings of itgis and mhis";
  add(kCloud, "--calibration", o.calibration, "Activations that are captured (default 2^16)");
  add(kCloud, "--calibration-seed", o.calibration_seed, "Seed of these activations; --seed where not given");
  add(kGradients, "--temperature", o.temperature,
      "Lower follows the gradient more; default: the shipped table's, or 1");
  add(kGradients, "--normaliser", o.normaliser, "mhis: harmonic or bridge (default harmonic)");
  add(kGradients, "--chains", o.chains, "mhis: chains");
  add(kGradients, "--burn-in", o.burn_in, "mhis: steps of every chain before its samples count");
}

}  // namespace

void add_estimate_flags(CLI::App& command, EstimateOptions& o) {
  add_question(command, o);
  add_work(command, o);
  add_splitting(command, o);
  add_others(command, o);
  constexpr const char* kGroup = "Output";
  command.add_flag("--json", o.json, "Machine-readable output, one line per target")->group(kGroup);
  command.add_flag("--quiet", o.quiet, "No progress")->group(kGroup);
}

}  // namespace deeptail::cli
