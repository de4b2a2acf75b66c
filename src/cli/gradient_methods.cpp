// Estimates that follow the gradient: itgis, mhis.
#include "cli/estimate_options.h"
#include "cli/interrupt.h"
#include "cli/parse.h"
#include "cli/subject.h"
#include "cli/target.h"
#include "core/json.h"
#include "core/progress.h"
#include "deeptail/itgis.h"
#include "deeptail/mhis.h"
#include "deeptail/temperatures.h"

namespace deeptail::cli {

namespace {

double temperature_of(const EstimateOptions& o, const Subject& subject) {
  if (o.temperature != 0.0) return o.temperature;
  return shipped_temperature(o.method, subject.provenance.model, subject.provenance.dist).value_or(1.0);
}

ItgisConfig itgis_config(const EstimateOptions& o) {
  ItgisConfig config{.seed = o.seed};
  if (!o.budget.empty()) config.samples = parse_count(o.budget, "--budget");
  if (o.temperature != 0.0) config.temperature = o.temperature;
  config.validate();
  return config;
}

MhisConfig mhis_config(const EstimateOptions& o) {
  MhisConfig config{.seed = o.seed, .normaliser = parse_normaliser(o.normaliser)};
  if (!o.budget.empty()) config.samples = parse_count(o.budget, "--budget");
  if (o.chains > 0) config.chains = o.chains;
  if (!o.burn_in.empty()) config.burn_in = o.burn_in == "0" ? 0 : parse_count(o.burn_in, "--burn-in");
  if (o.temperature != 0.0) config.temperature = o.temperature;
  config.validate();
  return config;
}

}  // namespace

std::optional<EstimateOutcome> run_gradient_method(const EstimateOptions& o, ThreadPool& pool) {
  if (o.method != "itgis" && o.method != "mhis") return std::nullopt;
  check_has_model(o);
  // Before any file is read, so that a wrong flag is told at once.
  ItgisConfig itgis_settings = o.method == "itgis" ? itgis_config(o) : ItgisConfig{};
  MhisConfig mhis_settings = o.method == "mhis" ? mhis_config(o) : MhisConfig{};
  Subject subject = load_subject(o.model, o.dist);
  const Target target = parse_target(o.target, subject.model.head(), subject.tokenizer);
  itgis_settings.temperature = mhis_settings.temperature = temperature_of(o, subject);
  const std::uint64_t total = o.method == "itgis"
                                  ? itgis_settings.samples
                                  : mhis_settings.samples + mhis_settings.chains * mhis_settings.burn_in;
  ProgressMeter meter(stderr, progress_style(stderr, o.quiet || o.json),
                      {.label = o.method, .unit = "samples", .total = total});
  const auto go_on = [&](std::uint64_t done) {
    meter.update(std::min(done, total));
    return !interrupted();
  };
  Estimate estimate = o.method == "itgis"
                          ? itgis(subject.model, subject.dist, target, itgis_settings, pool, go_on)
                          : mhis(subject.model, subject.dist, target, mhis_settings, pool, go_on);
  estimate.diagnostics.insert(estimate.diagnostics.begin(), {"temperature", itgis_settings.temperature});
  estimate.provenance = subject.provenance;
  return EstimateOutcome{std::move(estimate), std::move(subject.tokenizer)};
}

}  // namespace deeptail::cli
