// Estimates from activations: ga-amls, qld, qld-arc, gld.
#include <cmath>
#include <map>

#include "cli/cloud_subject.h"
#include "cli/estimate_options.h"
#include "cli/interrupt.h"
#include "cli/parse.h"
#include "cli/target.h"
#include "core/json.h"
#include "core/memory.h"
#include "core/progress.h"
#include "deeptail/ga_amls.h"
#include "deeptail/qld.h"

namespace deeptail::cli {

namespace {

using CloudMethod = Estimate (*)(const CloudSubject&, const Target&, const EstimateOptions&, ThreadPool&);

Estimate run_qld(const CloudSubject& s, const Target& target, const EstimateOptions& o, ThreadPool& pool) {
  return qld(s.head, s.activations, target, {.seed = o.seed}, pool);
}
Estimate run_qld_arc(const CloudSubject& s, const Target& target, const EstimateOptions& o,
                     ThreadPool& pool) {
  return qld_arc(s.head, s.activations, target, {.seed = o.seed}, pool);
}
Estimate run_gld(const CloudSubject& s, const Target& target, const EstimateOptions& o, ThreadPool& pool) {
  Estimate estimate = gld(s.head, s.activations, target, pool);
  estimate.seed = o.seed;
  return estimate;
}

GaAmlsConfig ga_config(const EstimateOptions& o) {
  GaAmlsConfig config{.seed = o.seed};
  config.n_particles = o.particles.value_or(config.n_particles);
  config.replicas = o.replicas.value_or(config.replicas);
  config.kernel.moves = o.moves.value_or(config.kernel.moves);
  const auto prior = ga_prior_of(o.prior);
  const auto kernel = kernel_of(o.kernel);
  if (!prior)
    throw InputError("--prior {}: expected student_t, student_t_matched, gaussian or conditioned",
                     printable(o.prior));
  if (!kernel) throw InputError("--kernel {}: expected mala, rwmh, mapla or pcn", printable(o.kernel));
  if (o.start != "calibration" && o.start != "prior")
    throw InputError("--start {}: expected calibration or prior", printable(o.start));
  config.prior = *prior;
  config.start = o.start == "prior" ? GaStart::kPrior : GaStart::kCalibration;
  config.kernel.kind = *kernel;
  config.kernel.burn_in = std::min(config.kernel.burn_in, (config.kernel.moves + 1) / 2);
  config.validate();
  return config;
}

Estimate run_ga_amls(const CloudSubject& s, const Target& target, const EstimateOptions& o,
                     ThreadPool& pool) {
  const ProgressStyle style = progress_style(stderr, o.quiet || o.json);
  const GaAmlsConfig config = ga_config(o);
  return ga_amls(s.head, s.activations, target, config, pool, [&](const GaProgress& p) {
    if (style != ProgressStyle::kNone)
      fmt::print(stderr, "run {} of {}  level {}: margin {:.3f}  p {:.2e}\n", p.replica + 1, config.replicas,
                 p.level + 1, p.score_level, std::exp(p.log_p));
    return !interrupted();
  });
}

EstimateOutcome run_on_cloud(CloudMethod method, const EstimateOptions& o, ThreadPool& pool) {
  const GaAmlsConfig config = ga_config(o);
  const auto check_size = [&](std::size_t n, std::size_t d) {
    const bool splits = o.method == "ga-amls";
    check_memory(fmt::format("--calibration {}{}", n, splits ? " and --particles" : ""),
                 2.0 * capture_bytes(n, d) + (splits ? ga_amls_bytes(config, n, d) : 0.0),
                 "take fewer activations or particles");
  };
  CloudSubject subject = load_cloud({.model = o.model,
                                     .dist = o.dist,
                                     .activations = o.activations,
                                     .unembed = o.unembed,
                                     .count = parse_count(o.calibration, "--calibration"),
                                     .seed = o.seed,
                                     .quiet = o.quiet || o.json,
                                     .check_size = check_size},
                                    pool);
  const Target target = parse_target(o.target, subject.head, subject.tokenizer);
  Estimate estimate = method(subject, target, o, pool);
  estimate.provenance = subject.provenance;
  estimate.cost.forward += subject.capture_cost.forward;
  estimate.cost.flops += subject.capture_cost.flops;
  estimate.cost.seconds += subject.capture_cost.seconds;
  if (subject.capture_cost.forward > 0)
    estimate.cost.forward_equivalents =
        estimate.cost.flops / subject.capture_cost.flops * static_cast<double>(subject.capture_cost.forward);
  return {std::move(estimate), std::move(subject.tokenizer)};
}

}  // namespace

void check_cloud_flags(const EstimateOptions& options) { ga_config(options); }

std::optional<EstimateOutcome> run_cloud_method(const EstimateOptions& o, ThreadPool& pool) {
  static const std::map<std::string, CloudMethod> methods = {
      {"qld", run_qld}, {"qld-arc", run_qld_arc}, {"gld", run_gld}, {"ga-amls", run_ga_amls}};
  const auto found = methods.find(o.method);
  if (found == methods.end()) return std::nullopt;
  return run_on_cloud(found->second, o, pool);
}

}  // namespace deeptail::cli
