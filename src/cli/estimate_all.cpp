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

AllTokensAsked asked_of(const EstimateOptions& o) {
  std::vector<Setting> settings;
  for (std::size_t i = 0; i < o.settings.size(); ++i)
    if (!o.settings[i].empty())
      settings.push_back({std::string(setting_rows()[i]->key), o.settings[i], setting_rows()[i]->flag()});
  AllTokensAsked asked = read_all_tokens(settings);
  asked.config.seed = o.seed;
  return asked;
}

double figure(const Estimate& e, std::string_view name) {
  for (const auto& [key, value] : e.diagnostics)
    if (key == name) return value;
  return 0.0;
}

void print_table(const AllTokens& all, const LoadedModel& model, const InputLaw& law,
                 const AllTokensConfig& config) {
  fmt::print("{} on {}, all tokens from {:.3g} to {:.3g}, {} forward passes' work, seed {}, {:.1f} s\n",
             screen_text(model.name), screen_text(law.facts().name), config.above, config.below,
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
  if (!all.outside.empty()) fmt::print("{} more were seen, and lie outside the bounds\n", all.outside.size());
  if (all.unseen > 0)
    fmt::print("{} were never said: each is below {:.3g} with 95 % confidence\n", all.unseen,
               std::exp(all.log_unseen_high));
}

void print_lines(const AllTokens& all, const LoadedModel& model) {
  for (const Estimate& e : all.rows) fmt::print("{}\n", estimate_line(e, model.tokenizer));
  fmt::print("{}\n", rest_json(all));
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
  command
      .add_flag("--all", o.all,
                "Instead of --target: every token of the vocabulary, as a table; --method all-tokens answers "
                "some of them")
      ->group(kGroup);
  command
      .add_option("--out", o.out,
                  "With --all: a file for the counts of its plain draws, as truth writes them")
      ->group("Output");
}

void check_all_flags(const EstimateOptions& o) {
  const AllOptions& a = o.all;
  if (!a.all) {
    const bool all_tokens = o.method == "all-tokens";
    for (const auto& [is_given, flag] : {std::pair(!all_tokens && !given(o, "above").empty(), "--above"),
                                         {!all_tokens && !given(o, "below").empty(), "--below"},
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
  if (const auto unused = o.event.unused(); !unused.empty()) throw InputError("{}", unused.front());
  if (!o.method.empty() && o.method != "all-tokens" && o.method != "tokensplit")
    throw InputError("--all and --method {}: expected none but all-tokens", screen_text(o.method));
  for (std::size_t i = 0; i < o.settings.size(); ++i) {
    const SettingRow& row = *setting_rows()[i];
    if (!o.settings[i].empty() && method_row("all-tokens").setting(row.key) == nullptr)
      throw InputError("{} and --all: expected none but --budget, --above, --below and --device", row.flag());
  }
}

void run_on_all_tokens(const EstimateOptions& o, ThreadPool& pool, ProgressMeter& meter) {
  auto [config, device] = asked_of(o);
  const LoadedModel model = load_model(o.model);
  const auto law = make_law(o.prompts, model);
  if (config.budget == 0.0 && law->tables() != nullptr)
    config.budget = all_tokens_budget(model.config(), *law->tables(), device);
  const auto work = static_cast<std::uint64_t>(config.budget);
  meter.restart({.label = "all tokens", .unit = "forwards", .total = work});
  const auto watch = [&](const Progress& p) {
    meter.update(std::min(p.done, work));
    return !interrupted();
  };
  const AllTokens all = estimate_all(model, *law, config, pool, watch, device);
  meter.clear();
  if (o.json)
    print_lines(all, model);
  else
    print_table(all, model, *law, config);
  flush_output();
  if (!o.all.out.empty()) write_counts(o.all.out, all, provenance_of(model, *law));
  if (all.stopped)
    throw Stopped(kInterrupted, "interrupted; the rows above are of what was drawn until then");
}

}  // namespace deeptail::cli
