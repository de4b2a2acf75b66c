#include "cli/estimate_flags.h"

#include <algorithm>

#include "cli/estimate_all.h"
#include "cli/parse.h"
#include "core/screen_text.h"

namespace deeptail::cli {

namespace {

// The flags that were given. Every method runs on the CPU, so asking for it tells a method nothing.
std::vector<Setting> given_settings(const EstimateOptions& o) {
  std::vector<Setting> given;
  for (std::size_t i = 0; i < o.settings.size(); ++i) {
    const SettingRow& row = *setting_rows()[i];
    if (row.key == "temperature" && o.event.about_continuation()) continue;  // it is that of sampling
    if (!o.settings[i].empty() && !(row.key == "device" && o.settings[i] == "cpu"))
      given.push_back({std::string(row.key), o.settings[i], row.flag()});
  }
  return given;
}

// Those of the settings that the method has.
std::vector<Setting> settings_for(const MethodRow& row, std::vector<Setting> given) {
  std::erase_if(given, [&](const Setting& s) { return row.setting(s.key) == nullptr; });
  return given;
}

// Flags of other methods, each with all that such a method would be told, but for its work: what fits one
// method's budget may not fit another's.
void check_unused(const MethodRow& used, const std::vector<Setting>& given) {
  const auto is_unused = [&](const Setting& s) { return used.setting(s.key) == nullptr; };
  for (const MethodRow* row : method_rows()) {
    std::vector<Setting> settings = settings_for(*row, given);
    if (row == &used || std::none_of(settings.begin(), settings.end(), is_unused)) continue;
    std::erase_if(settings, [&](const Setting& s) { return row->setting(s.key)->about_work; });
    make_method(std::string(row->name), settings);
  }
}

}  // namespace

std::string method_name(const EstimateOptions& o) {
  if (!o.method.empty()) return o.method;
  if (o.all.all) return "all-tokens";
  return o.event.about_continuation() ? "auto" : "tokensplit";
}

Method checked_method(const EstimateOptions& o) {
  const std::vector<Setting> given = given_settings(o);
  for (std::size_t i = 0; i < o.settings.size(); ++i)
    if (!o.settings[i].empty()) setting_rows()[i]->check(o.settings[i], setting_rows()[i]->flag());
  const MethodRow& row = method_row(method_name(o));
  Method method = make_method(std::string(row.name), settings_for(row, given));
  if (o.event.about_continuation()) sampling_of(o.event);
  check_all_flags(o);
  if (o.targets.empty() && o.targets_file.empty() && !o.event.about_continuation() && !o.all.all)
    throw InputError(
        "--target is required: a token id or a token, such as --target 310 or --target \" the\"");
  check_unused(row, given);
  return method;
}

void warn_of_unused_flags(const EstimateOptions& o, const Method& method, Estimate& estimate) {
  for (const Setting& s : given_settings(o))
    if (!method.takes(s.key))
      estimate.warnings.push_back(fmt::format("{} has no effect on {}", s.where, method.name));
  for (std::string& sentence : o.event.unused()) estimate.warnings.push_back(std::move(sentence));
}

namespace {

constexpr const char* kWorkGroup = "The method and its work";

void add_question(CLI::App& command, EstimateOptions& o) {
  constexpr const char* kGroup = "The question";
  std::vector<std::string_view> on_activations;
  for (const MethodRow* row : method_rows())
    if (row->setting("calibration") != nullptr) on_activations.push_back(row->name);
  command.add_option("--model", o.model, "Folder or name of a model, or hf:ORG/NAME")->group(kGroup);
  command.add_option("--dist", o.prompts.dist, "Name or file of a distribution")->group(kGroup);
  add_prompt_flags(command, o.prompts);
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
                  fmt::format("Instead of --model and --dist: activations [n, d_model] ({})",
                              fmt::join(on_activations, ", ")))
      ->group(kGroup);
  command
      .add_option("--unembed", o.unembed, "With --activations: file with unembed.W_U and perhaps ln_final")
      ->group(kGroup);
}

// "tokensplit and ga-amls": the methods that take it.
std::string takers_of(const SettingRow& setting) {
  std::vector<std::string_view> names;
  for (const MethodRow* method : method_rows())
    if (method->setting(setting.key) != nullptr) names.push_back(method->name);
  const std::string_view last = names.back();
  names.pop_back();
  return names.empty() ? std::string(last) : fmt::format("{} and {}", fmt::join(names, ", "), last);
}

std::string help_of(const SettingRow& setting) {
  std::string help(setting.help);
  if (setting.kind == SettingKind::kChoice && help.find(setting.words.front()) == std::string::npos)
    help += ": " + setting.expected();
  if (!setting.usual.empty()) help += fmt::format(" (default {})", setting.usual);
  return help;
}

const char* type_of(SettingKind kind) {
  return kind == SettingKind::kCount ? "COUNT" : kind == SettingKind::kNumber ? "NUMBER" : "WORD";
}

void add_method(CLI::App& command, EstimateOptions& o) {
  std::string methods;
  for (const MethodRow* row : method_rows())
    methods += fmt::format("{}{}: {}", methods.empty() ? "" : "; ", row->name, row->help);
  command.add_option("--method", o.method, methods + " (default: tokensplit; auto for what is sampled)")
      ->group(kWorkGroup);
}

// The settings in groups by the methods that take them.
void add_settings(CLI::App& command, EstimateOptions& o) {
  for (std::size_t i = 0; i < o.settings.size(); ++i) {
    const SettingRow& row = *setting_rows()[i];
    command.add_option(row.flag(), o.settings[i], help_of(row))
        ->type_name(type_of(row.kind))
        ->group(row.about_work ? kWorkGroup : "Settings of " + takers_of(row));
    if (row.key == "calibration")
      command
          .add_option("--calibration-seed", o.calibration_seed,
                      "Seed of these activations; --seed where not given")
          ->group("Settings of " + takers_of(row));
  }
}

void add_run(CLI::App& command, EstimateOptions& o) {
  command.add_option("--seed", o.seed, "Seed")->capture_default_str()->group(kWorkGroup);
  command.add_option("--threads", o.threads, "Threads; 0: one per core")
      ->capture_default_str()
      ->group(kWorkGroup);
}

}  // namespace

void add_estimate_flags(CLI::App& command, EstimateOptions& o) {
  add_question(command, o);
  add_all_flags(command, o.all);
  add_event_flags(command, o.event, false);
  add_method(command, o);
  add_settings(command, o);
  add_run(command, o);
  constexpr const char* kGroup = "Output";
  command.add_flag("--json", o.json, "Machine-readable output, one line per target")->group(kGroup);
  command.add_flag("--quiet", o.quiet, "No progress")->group(kGroup);
}

}  // namespace deeptail::cli
