// Estimates from activations: ga-amls, qld, qld-arc, gld.
#include <cmath>
#include <map>

#include "cli/cloud_subject.h"
#include "cli/estimate_options.h"
#include "cli/interrupt.h"
#include "cli/parse.h"
#include "cli/target.h"
#include "core/json.h"
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
  if (o.particles > 0) config.n_particles = o.particles;
  if (o.replicas > 0) config.replicas = o.replicas;
  if (o.moves > 0) config.kernel.moves = o.moves;
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
  ga_config(o);  // so that a wrong flag is told before the work
  CloudSubject subject = load_cloud({.model = o.model,
                                     .dist = o.dist,
                                     .activations = o.activations,
                                     .unembed = o.unembed,
                                     .count = parse_count(o.calibration, "--calibration"),
                                     .seed = o.seed,
                                     .quiet = o.quiet || o.json},
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

std::optional<EstimateOutcome> run_cloud_method(const EstimateOptions& o, ThreadPool& pool) {
  static const std::map<std::string, CloudMethod> methods = {
      {"qld", run_qld}, {"qld-arc", run_qld_arc}, {"gld", run_gld}, {"ga-amls", run_ga_amls}};
  const auto found = methods.find(o.method);
  if (found == methods.end()) return std::nullopt;
  return run_on_cloud(found->second, o, pool);
}

}  // namespace deeptail::cli
