#include "cli/estimate_all.h"

#include <cmath>

#include "cli/estimate_output.h"
#include "cli/interrupt.h"
#include "cli/output.h"
#include "cli/parse.h"
#include "cli/streams.h"
#include "cli/tokens.h"
#include "core/json.h"
#include "core/screen_text.h"
#include "core/write_file.h"
#include "deeptail/all_tokens.h"
#include "deeptail/truth.h"

namespace deeptail::cli {

namespace {

std::string given(const EstimateOptions& o, std::string_view key) {
  for (std::size_t i = 0; i < o.settings.size(); ++i)
    if (setting_rows()[i]->key == key) return o.settings[i];
  return "";
}

AllTokensConfig config_of(const EstimateOptions& o) {
  AllTokensConfig config{.seed = o.seed};
  if (const std::string budget = given(o, "budget"); !budget.empty())
    config.budget = static_cast<double>(parse_count(budget, "--budget"));
  if (o.all.above) config.above = *o.all.above;
  if (o.all.below) config.below = *o.all.below;
  config.validate();
  return config;
}

Device device_of(const EstimateOptions& o) {
  return given(o, "device") == name_of(Device::kCuda) ? Device::kCuda : Device::kCpu;
}

// What every row was made from and with.
void add_origin(Estimate& e, const LoadedModel& model, const Distribution& dist,
                const AllTokensConfig& config, Device device) {
  e.event = NextToken(Target(e.target, model.head())).text();
  e.provenance = provenance_of(model, dist);
  e.provenance.device = name_of(device);
  e.settings = {{"all", std::string("true")},
                {"budget", static_cast<std::uint64_t>(config.budget)},
                {"above", config.above},
                {"below", config.below}};
}

double figure(const Estimate& e, std::string_view name) {
  for (const auto& [key, value] : e.diagnostics)
    if (key == name) return value;
  return 0.0;
}

void print_table(const AllTokens& all, const LoadedModel& model, const Distribution& dist,
                 const AllTokensConfig& config) {
  fmt::print("{} on {}, all tokens from {:.3g} to {:.3g}, {} forward passes' work, seed {}, {:.1f} s\n",
             screen_text(model.name), screen_text(dist.name), config.above, config.below,
             short_count(all.cost.forward_equivalents), config.seed, all.cost.seconds);
  fmt::print("{:>7} {:>10} {:>10}  {:<24} {:<11} token\n", "id", "count", "p", "95% interval", "by");
  std::size_t warned = 0;
  for (const Estimate& e : all.rows) {
    const TokenId token = e.target.front();
    const bool counted = e.method == "mc";
    warned += !e.warnings.empty();
    fmt::print("{:>7} {:>10} {:>10.3e}  {:<24} {:<11} {}\n", token,
               counted ? fmt::format("{:.0f}", figure(e, "count")) : "-", std::exp(e.log_p),
               fmt::format("[{:.3e}, {:.3e}]", std::exp(e.log_low), std::exp(e.log_high)),
               fmt::format("{}{}", e.method, e.warnings.empty() ? "" : " !"), shown(model.tokenizer, token));
  }
  fmt::print("{} tokens; counts are of {} plain draws\n", all.rows.size(), all.samples);
  if (warned > 0) fmt::print("{} have a warning (!), which --json tells\n", warned);
  if (all.other_rows > 0) fmt::print("{} more were seen, and lie outside the bounds\n", all.other_rows);
  if (all.unseen > 0)
    fmt::print("{} were never said: each is below {:.3g} with 95 % confidence\n", all.unseen,
               std::exp(all.log_unseen_high));
}

void print_lines(const AllTokens& all, const LoadedModel& model) {
  for (const Estimate& e : all.rows) fmt::print("{}\n", estimate_line(e, model.tokenizer));
  print_json({{"rows", all.rows.size()},
              {"outside", all.other_rows},
              {"unseen", all.unseen},
              {"unseen_below", std::exp(all.log_unseen_high)},
              {"plain_draws", all.samples},
              {"forward_equivalents", all.cost.forward_equivalents},
              {"seconds", all.cost.seconds},
              {"stopped", all.stopped}});
}

// The counted part as `deeptail truth` would have it.
void write_counts(const std::string& path, const AllTokens& all, const Provenance& p) {
  Truth truth{.model = p.model, .dist = p.dist, .model_sha256 = p.model_sha256, .dist_sha256 = p.dist_sha256};
  truth.ranges = {{.source = "deeptail", .seed = all.seed, .first = all.first, .count = all.samples}};
  for (std::size_t id = 0; id < all.counts.size(); ++id)
    if (all.counts[id] > 0) truth.counts[static_cast<TokenId>(id)] = all.counts[id];
  write_file(path, to_json(truth));
}

}  // namespace

void add_all_flags(CLI::App& command, AllOptions& o) {
  constexpr const char* kGroup = "The question";
  command.add_flag("--all", o.all, "Instead of --target: every token of the vocabulary, as a table")
      ->group(kGroup);
  command.add_option("--above", o.above, "With --all: tokens this likely or likelier (default 1e-8)")
      ->group(kGroup);
  command.add_option("--below", o.below, "With --all: tokens this likely or less (default 1)")->group(kGroup);
  command
      .add_option("--out", o.out,
                  "With --all: a file for the counts of its plain draws, as truth writes them")
      ->group("Output");
}

void check_all_flags(const EstimateOptions& o) {
  const AllOptions& a = o.all;
  if (!a.all) {
    for (const auto& [is_given, flag] : {std::pair(a.above.has_value(), "--above"),
                                         {a.below.has_value(), "--below"},
                                         {!a.out.empty(), "--out"}})
      if (is_given) throw InputError("{}: goes with --all", flag);
    return;
  }
  if (!o.targets.empty() || !o.targets_file.empty())
    throw InputError("--all and --target: expected one of them");
  if (o.event.about_continuation() || !o.activations.empty() || !o.unembed.empty() || o.prompts.dist.empty())
    throw InputError(
        "--all is about the most likely next token after inputs of a distribution: expected --model and "
        "--dist");
  if (o.model.empty()) throw InputError("--all: expected --model and --dist");
  if (!o.method.empty() && o.method != "tokensplit")
    throw InputError("--all and --method {}: all tokens at once are asked of tokensplit",
                     screen_text(o.method));
  for (std::size_t i = 0; i < o.settings.size(); ++i) {
    const SettingRow& row = *setting_rows()[i];
    if (!o.settings[i].empty() && row.key != "budget" && row.key != "device")
      throw InputError("{} and --all: expected none but --budget and --device", row.flag());
  }
  config_of(o);
}

void run_on_all_tokens(const EstimateOptions& o, ThreadPool& pool, ProgressMeter& meter) {
  AllTokensConfig config = config_of(o);
  const LoadedModel model = load_model(o.model);
  const auto law = make_law(o.prompts, model);
  if (law->tables() == nullptr)
    throw InputError("--all: {}: expected a distribution of independent tokens",
                     screen_text(law->facts().name));
  const Distribution& dist = *law->tables();
  const Device device = device_of(o);
  if (config.budget == 0.0) config.budget = all_tokens_budget(model.transformer.config(), dist, device);
  const auto work = static_cast<std::uint64_t>(config.budget);
  meter.restart({.label = "all tokens", .unit = "forwards", .total = work});
  const auto watch = [&](const Progress& p) {
    meter.update(std::min(p.done, work));
    return !interrupted();
  };
  AllTokens all = estimate_all(model.transformer, dist, config, pool, watch, device);
  for (Estimate& e : all.rows) add_origin(e, model, dist, config, device);
  meter.clear();
  if (o.json)
    print_lines(all, model);
  else
    print_table(all, model, dist, config);
  flush_output();
  if (!o.all.out.empty()) write_counts(o.all.out, all, provenance_of(model, dist));
  if (all.stopped)
    throw Stopped(kInterrupted, "interrupted; the rows above are of what was drawn until then");
}

}  // namespace deeptail::cli
