#include "deeptail/methods.h"

#include <cmath>
#include <limits>
#include <utility>

#include "core/nearest.h"
#include "core/parse_count.h"
#include "deeptail/itgis.h"
#include "deeptail/mhis.h"
#include "deeptail/qld.h"
#include "deeptail/temperatures.h"
#include "estimators/setting_reader.h"
#include "estimators/ties.h"

namespace deeptail {

namespace {

void settle(SettingValues& values, std::string_view key, SettingValue value) {
  for (auto& [known, at] : values)
    if (known == key) at = std::move(value);
}

std::uint64_t calibration_of(SettingReader& s) {
  CaptureConfig config;
  s.count("calibration", config.count);
  config.validate();
  return config.count;
}

Method make_tokensplit(SettingReader& s) {
  TokensplitConfig config;
  s.count("budget", config.budget);
  s.count("replicas", config.replicas);
  s.real("rel_error", config.rel_error);
  s.count("particles", config.particles);
  s.count("first_draw", config.first_draw);
  s.count("moves", config.moves);
  s.real("survive_fraction", config.survive_fraction);
  s.real("forgotten", config.forgotten);
  s.real("taper", config.taper);
  Device device = Device::kCpu;
  s.choice("device", device_of, "cpu or cuda", device);
  config.validate();
  const auto budget = [config, device](const ModelConfig& model, const Distribution& dist) {
    return config.budget > 0.0 ? config.budget : tokensplit_budget(model, dist, device);
  };
  const auto with_seed = [config](std::uint64_t seed) {
    TokensplitConfig c = config;
    c.seed = seed;
    return c;
  };
  Method method{
      .settle =
          [budget](const MethodInput& in, SettingValues& values) {
            settle(values, "budget", static_cast<std::uint64_t>(budget(in.model->config(), *in.dist)));
          },
      .device = device,
      .unit = "forwards",
      .work = [budget](const ModelConfig& model,
                       const Distribution& dist) { return static_cast<std::uint64_t>(budget(model, dist)); },
      .run =
          [with_seed, device](const MethodInput& in, const Target& target, std::uint64_t seed,
                              ThreadPool& pool, const MethodHooks& hooks) {
            if (device == Device::kCuda)
              return tokensplit_on_cuda(*in.model, *in.dist, target, with_seed(seed), hooks.keep_going);
            return tokensplit(*in.model, *in.dist, target, with_seed(seed), pool, hooks.keep_going);
          }};
  if (device == Device::kCuda)
    method.run_many = [with_seed](const MethodInput& in, std::span<const MethodTask> tasks,
                                  const ManyHooks& hooks) {
      std::vector<TokensplitTask> all;
      for (const MethodTask& task : tasks) all.push_back({task.target, with_seed(task.seed)});
      tokensplit_many(*in.model, *in.dist, all, hooks);
    };
  return method;
}

Method make_mc(SettingReader& s) {
  McConfig config;
  s.count("budget", config.budget);
  config.validate();
  return {.unit = "inputs",
          .work = [config](const ModelConfig&, const Distribution&) { return config.budget; },
          .run =
              [config](const MethodInput& in, const Target& target, std::uint64_t seed, ThreadPool& pool,
                       const MethodHooks& hooks) {
                McConfig c = config;
                c.seed = seed;
                return mc(*in.model, *in.dist, target, c, pool, hooks.keep_going);
              }};
}

// The one that was set, or the shipped table's for this model and distribution. It is told with the estimate.
double temperature_of(double set, const char* method, const MethodInput& in) {
  if (set > 0.0) return set;
  return shipped_temperature(method, in.provenance.model, in.provenance.dist).value_or(1.0);
}
auto settle_temperature(double set, const char* method) {
  return [set, method](const MethodInput& in, SettingValues& values) {
    settle(values, "temperature", temperature_of(set, method, in));
  };
}
void tell_temperature(Estimate& estimate, double temperature) {
  estimate.diagnostics.insert(estimate.diagnostics.begin(), {"temperature", temperature});
}

Method make_itgis(SettingReader& s) {
  ItgisConfig config;
  double temperature = 0.0;
  s.count("budget", config.samples);
  s.positive("temperature", temperature);
  config.validate();
  return {.settle = settle_temperature(temperature, "itgis"),
          .unit = "samples",
          .work = [config](const ModelConfig&, const Distribution&) { return config.samples; },
          .run =
              [config, temperature](const MethodInput& in, const Target& target, std::uint64_t seed,
                                    ThreadPool& pool, const MethodHooks& hooks) {
                ItgisConfig c = config;
                c.seed = seed;
                c.temperature = temperature_of(temperature, "itgis", in);
                Estimate estimate = itgis(*in.model, *in.dist, target, c, pool, hooks.keep_going);
                tell_temperature(estimate, c.temperature);
                return estimate;
              }};
}

// The published burn-in belongs to the published number of samples, twice as many. For a smaller budget it is
// in proportion, and so are the plain inputs: what is done stays near what was asked for.
MhisConfig within_budget(MhisConfig config, bool burn_in_set) {
  const std::uint64_t samples = config.samples;
  if (!burn_in_set)
    config.burn_in = std::min(config.burn_in, samples / std::max<std::size_t>(2, 2 * config.chains));
  config.bound_inputs = std::min<std::uint64_t>(config.bound_inputs, samples);
  config.bridge_inputs =
      std::min<std::uint64_t>(config.bridge_inputs, std::max<std::uint64_t>(samples, 2 * config.chains));
  return config;
}

Method make_mhis(SettingReader& s) {
  MhisConfig config;
  double temperature = 0.0;
  s.count("budget", config.samples);
  s.positive("temperature", temperature);
  s.count("chains", config.chains);
  const Setting* burn_in = s.find("burn_in");
  if (burn_in != nullptr)
    config.burn_in = burn_in->value == "0" ? 0 : parse_count(burn_in->value, burn_in->where);
  const std::uint64_t usual = config.burn_in;
  config = within_budget(config, burn_in != nullptr);
  s.note("burn_in", config.burn_in);
  if (const Setting* normaliser = s.find("normaliser"))
    config.normaliser = parse_normaliser(normaliser->value);
  s.note("normaliser", std::string(name_of(config.normaliser)));
  config.validate();
  const bool short_burn_in = config.burn_in < usual;
  return {.settle = settle_temperature(temperature, "mhis"),
          .unit = "samples",
          .work = [config](const ModelConfig&,
                           const Distribution&) { return config.samples + config.chains * config.burn_in; },
          .run =
              [config, temperature, short_burn_in](const MethodInput& in, const Target& target,
                                                   std::uint64_t seed, ThreadPool& pool,
                                                   const MethodHooks& hooks) {
                MhisConfig c = config;
                c.seed = seed;
                c.temperature = temperature_of(temperature, "mhis", in);
                Estimate estimate = mhis(*in.model, *in.dist, target, c, pool, hooks.keep_going);
                tell_temperature(estimate, c.temperature);
                if (short_burn_in)
                  estimate.warnings.push_back(fmt::format(
                      "the budget is small: chains burn in for {} steps only and may remember their start",
                      c.burn_in));
                return estimate;
              }};
}

Method make_ga_amls(SettingReader& s) {
  GaAmlsConfig config;
  const std::uint64_t calibration = calibration_of(s);
  s.count("particles", config.n_particles);
  s.count("replicas", config.replicas);
  s.count("moves", config.kernel.moves);
  s.real("step_size", config.kernel.step_size);
  s.choice("prior", ga_prior_of, "student_t, student_t_matched, gaussian or conditioned", config.prior);
  s.choice("kernel", kernel_of, "mala, rwmh, mapla or pcn", config.kernel.kind);
  s.choice("start", ga_start_of, "calibration or prior", config.start);
  s.choice("device", device_of, "cpu or cuda", config.device);
  config.kernel.burn_in = std::min(config.kernel.burn_in, (config.kernel.moves + 1) / 2);
  config.validate();
  return {.calibration = calibration,
          .replicas = config.replicas,
          .device = config.device,
          .bytes = [config](std::size_t n, std::size_t d) { return ga_amls_bytes(config, n, d); },
          .run =
              [config](const MethodInput& in, const Target& target, std::uint64_t seed, ThreadPool& pool,
                       const MethodHooks& hooks) {
                GaAmlsConfig c = config;
                c.seed = seed;
                return ga_amls(*in.head, *in.activations, target, c, pool, hooks.after_level);
              }};
}

Method make_qld(SettingReader& s) {
  return {
      .calibration = calibration_of(s),
      .run = [](const MethodInput& in, const Target& target, std::uint64_t seed, ThreadPool& pool,
                const MethodHooks&) { return qld(*in.head, *in.activations, target, {.seed = seed}, pool); }};
}

Method make_qld_arc(SettingReader& s) {
  return {.calibration = calibration_of(s),
          .one_token = true,
          .run = [](const MethodInput& in, const Target& target, std::uint64_t seed, ThreadPool& pool,
                    const MethodHooks&) {
            return qld_arc(*in.head, *in.activations, target, {.seed = seed}, pool);
          }};
}

Method make_gld(SettingReader& s) {
  return {.calibration = calibration_of(s),
          .run = [](const MethodInput& in, const Target& target, std::uint64_t seed, ThreadPool& pool,
                    const MethodHooks&) {
            Estimate estimate = gld(*in.head, *in.activations, target, pool);
            estimate.seed = seed;
            return estimate;
          }};
}

// Ties between tokens that always tie, which these methods cannot see, are settled beforehand.
Estimate run_on_activations(const Method& method, const MethodInput& input, const Target& target,
                            std::uint64_t seed, ThreadPool& pool, const MethodHooks& hooks) {
  const std::vector<TokenId> ids = without_ties(*input.head, target);
  const bool never = ids.empty(), always = ids.size() == input.head->d_vocab();
  Estimate e{.method = method.name, .guarantee = Guarantee::kModelBased, .seed = seed};
  if (never || always) {
    e.log_p = e.log_low = e.log_high = always ? 0.0 : -std::numeric_limits<double>::infinity();
    e.status = always ? Status::kOk : Status::kNotReachedUpperBound;
    e.warnings.emplace_back(always
                                ? "all logits are the same, and ties go to the smallest id: always said"
                                : "a smaller id has the same column of W_U, and ties go to it: never said");
  } else {
    e = method.run(input, method.one_token ? target : Target(ids, *input.head), seed, pool, hooks);
  }
  e.target = target.ids();
  return e;
}

// The table: a new method is a function above and a line here.
constexpr std::pair<const char*, Method (*)(SettingReader&)> kMethods[] = {
    {"tokensplit", make_tokensplit}, {"mc", make_mc},   {"itgis", make_itgis},     {"mhis", make_mhis},
    {"ga-amls", make_ga_amls},       {"qld", make_qld}, {"qld-arc", make_qld_arc}, {"gld", make_gld},
};

}  // namespace

std::vector<std::string> method_names() {
  std::vector<std::string> names;
  for (const auto& [name, make] : kMethods) names.emplace_back(name);
  return names;
}

Method make_method(const std::string& name, const std::vector<Setting>& settings) {
  for (const auto& [known, make] : kMethods) {
    if (name != known) continue;
    SettingReader reader(settings);
    Method method = make(reader);
    method.name = name;
    method.given = settings;
    method.settings = reader.finish(name);
    method.values = reader.used();
    return method;
  }
  throw InputError("method {}: expected one of {}{}", printable(name), fmt::join(method_names(), ", "),
                   did_you_mean(name, method_names()));
}

Cost capture_cost(const ModelConfig& config, const Distribution& dist, std::uint64_t n, double seconds) {
  return {.forward = n,
          .flops = static_cast<double>(n) * forward_flops(config, dist.length()),
          .seconds = seconds};
}

namespace {

// What every estimate tells, whatever the method.
void finish(Estimate& estimate, const Method& method, const MethodInput& input) {
  estimate.provenance = input.provenance;
  estimate.provenance.device = name_of(method.device);
  estimate.settings = method.values;
  if (method.settle) method.settle(input, estimate.settings);
  if (method.calibration > 0)
    settle(estimate.settings, "calibration", static_cast<std::uint64_t>(input.activations->n));
  if (!std::isinf(estimate.log_p) && estimate.log_p < std::log(kSmallestChecked))
    estimate.warnings.push_back(fmt::format(
        "p is below {:.0e}: nothing so small has been checked here against a count or a closed form",
        kSmallestChecked));
}

}  // namespace

Estimate run_method(const Method& method, const MethodInput& input, const Target& target, std::uint64_t seed,
                    ThreadPool& pool, const MethodHooks& hooks) {
  Estimate estimate = method.calibration == 0 ? method.run(input, target, seed, pool, hooks)
                                              : run_on_activations(method, input, target, seed, pool, hooks);
  finish(estimate, method, input);
  if (method.calibration == 0) return estimate;
  const Cost& capture = input.capture_cost;
  estimate.cost.forward += capture.forward;
  estimate.cost.flops += capture.flops;
  estimate.cost.seconds += capture.seconds;
  if (capture.forward > 0)
    estimate.cost.forward_equivalents =
        estimate.cost.flops / capture.flops * static_cast<double>(capture.forward);
  return estimate;
}

void run_method_many(const Method& method, const MethodInput& input, std::span<const MethodTask> tasks,
                     const ManyHooks& hooks) {
  ManyHooks told = hooks;
  told.on_estimate = [&](std::size_t task, Estimate estimate) {
    finish(estimate, method, input);
    hooks.on_estimate(task, std::move(estimate));
  };
  method.run_many(input, tasks, told);
}

}  // namespace deeptail
